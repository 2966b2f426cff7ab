# SPDX-License-Identifier: Apache-2.0
"""The suites, in the order in which they run: the quick ones first."""

import dataclasses
import sys

from clickos_lab import paths
from clickos_lab import prereq
from clickos_lab.suites import runner

_CARGO_SHOW = r'^(test result:|test .* FAILED|error|     Running )'
_STESTR_SHOW = r' (FAILED|\.\.\. FAIL)|^ - (Passed|Failed):'

#: folder with tests: what else has to be importable
_PYTHON_TESTS = {
    'clickos-image/benches': (),
    'clickos-image/image': (),
    'cosmos/python': (),
    'interfaces': (),
    'nova-driver': ('cosmos/python', 'interfaces'),
    'tacker-plugin': ('interfaces',),
    'tempest-tests': ('interfaces',),
    'vnfd-templates': ('tacker-plugin', 'interfaces'),
    'devstack/lab': ('interfaces',)}


def suites(state):
    """Return all suites."""
    return [*lint(state), *_python(state), *integration(state)]


def lint(state):
    """The suites that read the code; clippy alone keeps all cores busy."""
    readers = [
        _check('licenses'), _check('docs'), _check('promises'),
        _check('site'), _rustfmt(), _check('shell_scripts'),
        _check('prose'), _check('circles'),
        runner.Suite('pep8', [state.tool('flake8')]), _bandit(state)]
    return [
        *(dataclasses.replace(suite, has_company=True) for suite in readers),
        _cargo('clippy', 'clippy', '--workspace', '--all-targets', '--locked',
               '--', '-D', 'warnings')]


def unit(state):
    """Tests of single parts; ``rust-tests`` runs ``rust-units``, too."""
    return [*_python(state),
            _cargo('rust-units', 'test', '--workspace', '--lib', '--bins',
                   '--locked', '--', '--skip', 'as_root',
                   proof=r'^test result: ok. [1-9]')]


def _python(state):
    return [_python_tests(state, folder) for folder in _PYTHON_TESTS
            if (paths.REPO / folder / 'tests').is_dir()]


def integration(state):
    """Tests of parts together; they need root, some OpenStack or QEMU."""
    return [
        _check('wheel'), _rust_tests(state),
        _python_tests(state, 'devstack/lab', 'as_root'),
        _cargo('fuzz', 'test', '--manifest-path',
               'clickos-image/fuzz/Cargo.toml', '--locked',
               '--target-dir', 'target',
               proof=r'^test result: ok. [1-9]'),
        runner.Suite(
            'vnfs', [sys.executable, '-m', 'clickos_lab.suites.vnfs'],
            env={'PYTHONPATH': ':'.join(
                str(paths.REPO / f)
                for f in ('devstack/lab', 'tacker-plugin', 'interfaces'))},
            show=r'\.\.\. (ok|FAIL|ERROR)$|^(Ran|OK|FAILED) ',
            proof=r'^Ran [1-9]', fault=r'\(skipped=', timeout_s=600),
        runner.Suite(
            'xen', [sys.executable, '-m', 'clickos_lab.suites.xen'],
            show=r'^\[|\.\.\. (ok|FAIL|ERROR)$|^(Ran|OK|FAILED) ',
            proof=r'^Ran [1-9]', fault=r'\(skipped=', timeout_s=2400),
        runner.Suite(
            'tempest', [sys.executable, '-m', 'clickos_lab.suites.tempest'],
            show=r'^\[|\.\.\. (ok|FAIL|ERROR|SKIP)| - (Passed|Failed|Skipped)',
            proof=r' - Passed: [1-9]', fault=r' - Skipped: [1-9]',
            timeout_s=2400)]


def _rust(name):
    """A tool that is missing fails its suite under its own name."""
    return prereq.rust_tool(name) or name


def _check(name):
    return runner.Suite(
        name, [sys.executable, '-m', f'clickos_lab.checks.{name}'])


def _bandit(state):
    """Findings of medium severity and above; exceptions say nosec."""
    return runner.Suite(
        'bandit', [state.tool('bandit'), '--quiet', '--recursive', '-ll',
                   '--exclude', '*/tests/*', *_PYTHON_TESTS])


def _cargo(name, *arguments, **more):
    return runner.Suite(name, [_rust('cargo'), *arguments],
                        show=_CARGO_SHOW, **more)


def _rustfmt():
    """Also the files that cargo fmt does not see: build.rs lists them."""
    script = ('git ls-files -z --cached --others --exclude-standard "*.rs" | '
              'xargs -0 "$0" --check --edition 2024')
    return runner.Suite(
        'rustfmt', ['sh', '-c', script, _rust('rustfmt')])


def _rust_tests(state):
    """Build programs with the tests: alone they have other features.

    Crates with other features are built a second time.
    """
    script = '"$0" build --workspace --locked --lib --bins --tests ' \
        '--examples && "$0" test --workspace --locked --no-fail-fast'
    return runner.Suite(
        'rust-tests', ['sh', '-c', script, _rust('cargo')],
        env={'NOXEN_PREFIX': str(state.noxen)}, show=_CARGO_SHOW,
        proof=r'^test result: ok. [1-9]', timeout_s=1800)


def _python_tests(state, folder, kind='unit'):
    """One run a folder: each has its own package called tests."""
    places = [str(paths.REPO / f) for f in (folder, *_PYTHON_TESTS[folder])]
    name = f'python-{folder.replace("/", "-")}'
    if kind != 'unit':
        name += f'-{kind}'
    results = state.root / 'stestr' / name
    results.mkdir(parents=True, exist_ok=True)
    return runner.Suite(
        name, [state.tool('stestr'), '--test-path', f'{folder}/tests/{kind}',
               '--top-dir', folder,
               '--repo-url', results, 'run'],
        env={'PYTHONPATH': ':'.join(places)}, show=_STESTR_SHOW,
        proof=r' - Passed: [1-9]')

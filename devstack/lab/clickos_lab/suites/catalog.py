# SPDX-License-Identifier: Apache-2.0
"""The suites, in the order in which they run: the quick ones first."""

import dataclasses
import os
import sys

from clickos_lab import paths
from clickos_lab import prereq
from clickos_lab.suites import runner

_CARGO_SHOW = r'^(test result:|test .* FAILED|error|passed only|     Running )'
_STESTR_SHOW = r'\.\.\. FAIL|^ - (Passed|Failed):'

#: folder with tests: what else has to be importable; the longest first, since
#: some run at a time
_PYTHON_TESTS = {
    'tacker-plugin': ('interfaces', 'devstack/lab', 'tempest-tests'),
    'nova-driver': ('cosmos/python', 'interfaces'),
    'devstack/lab': ('interfaces',),
    'cosmos/python': (),
    'tempest-tests': ('interfaces',),
    'interfaces': (),
    'clickos-image/benches': (),
    'clickos-image/image': (),
    'vnfd-templates': ('tacker-plugin', 'interfaces')}
#: for each test of Python, by the kind of its folder; they tell which one
#: hangs, so they are many times what one takes
_LIMITS_S = {'unit': 240, 'as_root': 600, 'browser': 180}
#: of cargo: what `make test` builds and runs
_WORKSPACE = ('--workspace', '--locked', '--no-fail-fast', '--lib', '--bins')
#: the one crate whose documents have tests; rustdoc takes a second for each
_DOCUMENTED = 'vale-handoff'


def test(state):
    """The suites that a change must pass, in at most 20 minutes.

    Some wait for a clock or another process while others compute, so the
    longest of these comes early. One that builds waits for cargo's lock, so
    the two of those are far from each other.
    """
    return _together(
        *_readers(state), _cloud(), *_python(state), _rust_tests(state),
        _program('xen', '--gate', name='xen-boot'), _check('wheel'),
        _clippy())


def _together(*suites):
    return [dataclasses.replace(suite, runs_in_parallel=True)
            for suite in suites]


def lint(state):
    """The suites that read the code."""
    return [*_readers(state), _clippy()]


def _readers(state):
    """The suites that read the code and need one core."""
    return _together(
        _check('licenses'), _check('docs'), _check('promises'),
        _check('flaky'), _check('site'), _rustfmt(),
        _check('shell_scripts'), _check('prose'), _check('import_cycles'),
        _check('deciders'), runner.Suite('pep8', [state.tool('flake8')]),
        _bandit(state), _check('names'))


def _clippy():
    """Keeps all cores busy."""
    return runner.Suite(
        'clippy', [_rust('cargo'), 'clippy', '--workspace', '--all-targets',
                   '--locked', '--', '-D', 'warnings'], show=_CARGO_SHOW)


def unit(state):
    """Tests of single parts; ``rust-tests`` runs ``rust-units``, too."""
    return [*_python(state),
            _cargo('rust-units', *_WORKSPACE, '--', '--skip', 'as_root')]


def integration(state):
    """Tests of parts together; they need root, some OpenStack or QEMU."""
    return [
        *_readers(state), *_python(state), *_together(_check('wheel')),
        _browser(), _clippy(), _rust_tests(state),
        _python_tests(state, 'devstack/lab', 'as_root'),
        _program('vnfs', timeout_s=900, places=(
            'devstack/lab', 'tacker-plugin', 'interfaces')),
        *(_program('duties', *more, name='-'.join(['duties', *kind]),
                   timeout_s=1800, places=(
                       'devstack/lab', 'tacker-plugin', 'interfaces',
                       'cosmos/python'))
          for kind, more in (([], []), (['guest'], ['--guest']))),
        _program('xen', timeout_s=7200), _stock(), _cloud('--everything')]


#: The tiers of CONTRIBUTING.md that end with a table of suites, by name.
TIERS = {'test': test, 'lint': lint, 'unit': unit, 'integration': integration}


def _cloud(*arguments):
    return runner.Suite(
        'cloud', [sys.executable, '-m', 'clickos_lab.suites.cloud',
                  *arguments],
        show=r'^\[|\.\.\. (ok|FAIL|ERROR|SKIP)| - (Passed|Failed|Skipped)',
        required_output=r' - Passed: [1-9]',
        forbidden_output=r' - Skipped: [1-9]',
        timeout_s=7200 if arguments else 3600)


def _stock():
    """Tacker's stock driver next to ours, with Heat."""
    return dataclasses.replace(
        _cloud(), name='stock', timeout_s=1800,
        command=[sys.executable, '-m', 'clickos_lab.suites.stock'])


def _program(module, *arguments, name=None, places=(), **more):
    """Return a suite of unittest's tests, which a module of ours runs."""
    env = {'PYTHONPATH': ':'.join(str(paths.REPO / p) for p in places)} \
        if places else {}
    return runner.Suite(
        name or module,
        [sys.executable, '-m', f'clickos_lab.suites.{module}', *arguments],
        env=env, show=r'^\[|\.\.\. (ok|FAIL|ERROR)$|^(Ran|OK|FAILED) ',
        required_output=r'^Ran [1-9]', forbidden_output=r'\(skipped=', **more)


def _python(state):
    return _together(*(
        _python_tests(state, folder) for folder in _PYTHON_TESTS
        if (paths.REPO / folder / 'tests').is_dir()))


def _browser():
    """Pages of the dashboard in a browser, without services."""
    return runner.Suite(
        'browser', [sys.executable, '-m', 'clickos_lab.suites.browser'],
        env=_environment('tacker-plugin', 'browser'), show=_STESTR_SHOW,
        required_output=r' - Passed: [1-9]', runs_in_parallel=True)


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
    """Return a suite of Rust tests; arguments are those of `cargo test`.

    Many tests wait for a clock or another process, so more of them run at a
    time than there are processors.
    """
    threads = str(2 * (os.cpu_count() or 1))
    more['env'] = {'RUST_TEST_THREADS': threads, **more.get('env', {})}
    return runner.Suite(
        name, [sys.executable, '-m', 'clickos_lab.suites.cargo_tests',
               _rust('cargo'), *arguments],
        show=_CARGO_SHOW, required_output=r'^test result: ok. [1-9]', **more)


def _rustfmt():
    """Also the files that cargo fmt does not see: build.rs lists them."""
    script = ('git ls-files -z --cached --others --exclude-standard "*.rs" | '
              'xargs -0 "$0" --check --edition 2024')
    return runner.Suite(
        'rustfmt', ['sh', '-c', script, _rust('rustfmt')])


def _rust_tests(state):
    """Build programs with the tests: alone they have other features."""
    script = '"$0" build --workspace --locked --lib --bins --tests ' \
        f'--examples && "$0" test --locked -p {_DOCUMENTED} --doc && ' \
        'exec "$@"'
    suite = _cargo('rust-tests', *_WORKSPACE, '--tests', '--examples',
                   timeout_s=3600, env={'NOXEN_PREFIX': str(state.noxen)})
    return dataclasses.replace(suite, command=[
        'sh', '-c', script, _rust('cargo'), *suite.command])


def _python_tests(state, folder, kind='unit'):
    """One run a folder: each has its own package called tests."""
    name = f'python-{folder.replace("/", "-")}'
    if kind != 'unit':
        name += f'-{kind}'
    results = state.root / 'stestr' / name
    return runner.Suite(
        name, [sys.executable, '-m', 'clickos_lab.suites.stestr_tests',
               state.tool('stestr'), results, folder, kind],
        env=_environment(folder, kind), show=_STESTR_SHOW,
        required_output=r' - Passed: [1-9]')


def _environment(folder, kind):
    # The folder's own package `tests` comes first, before the lab's.
    places = [str(paths.REPO / f) for f in (
        folder, *_PYTHON_TESTS[folder], 'devstack/lab/limits',
        'devstack/lab')]
    return {'PYTHONPATH': ':'.join(places),
            'TEST_LIMIT_S': str(_LIMITS_S[kind])}

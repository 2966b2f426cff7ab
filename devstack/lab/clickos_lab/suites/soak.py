# SPDX-License-Identifier: Apache-2.0
"""``make soak``: hours on a Xen host or the lab; notes when a part passed.

``python -m clickos_lab.suites.soak [PART ...]``, the parts as below;
``help`` prints a line for each.
"""

import ast
import os
import re
import secrets
import subprocess
import sys
import time

from clickos_lab import errors
from clickos_lab import paths
from clickos_lab import prepare
from clickos_lab import prereq
from clickos_lab import rust
from clickos_lab.suites import debian13
from clickos_lab.suites import openstack_2026_1
from clickos_lab.suites import packages
from clickos_lab.suites import progress
from clickos_lab.suites import races
from clickos_lab.suites import results
from clickos_lab.suites import xen
from clickos_lab.xen import packages as xen_packages
from clickos_lab.xen import xen_paths

PARTS = {
    'routers': 'tests.soak.test_routers',
    'many': 'tests.soak.test_many',
    'cycles': 'tests.soak.test_cycles',
    'thousand': 'tests.soak.test_thousand',
    'thousand-patched': 'tests.soak.test_patched_thousand',
    'oxenstored': 'tests.soak.test_oxenstored',
    'parallel': 'tests.soak.test_parallel',
    'stores': 'tests.soak.test_stores',
    'time': 'tests.soak.test_time',
    'patched': 'tests.soak.test_patched',
    'driver': 'tests.soak.test_driver',
    'linux': 'tests.soak.test_linux',
    'staging': 'tests.soak.test_staging',
    'migrate': 'tests.soak.test_migrate',
    'nova-move': 'tests.soak.test_nova_move'}
#: Tests of patched tools of Xen that need no Xen.
ALONE = ('tests.soak.test_store_alone', 'tests.soak.test_xl_alone')

#: of the guests that write garbage into their rings
_HOSTILE_SECONDS = 300
#: for each fuzz target
_INPUTS = 20000
#: random chains of the test of loops
_WORLDS = 20000
#: of the guard's long test
_FRAMES = 300000
#: An attacker's line for the record begins with it.
_SEEN = 'seen: '


def _attack(_names):
    """Run the guard's long test, then the attackers on the lab.

    The lab's programs need the virtual environment.
    """
    state = paths.State()
    prepare.everything(state)
    env = {**os.environ, **rust.environment(state)}
    env['PATH'] = f'{state.venv}/bin:{env["PATH"]}'
    seed = secrets.randbelow(2 ** 32)
    progress.note(f'{_FRAMES} frames by two judges, seed {seed}')
    judges = subprocess.run(
        [prereq.rust_tool('cargo') or 'cargo', 'test', '--release',
         '--package', 'valed', '--test', 'it', 'differential::', '--',
         '--nocapture'],
        cwd=paths.REPO,
        env={**env, 'VALE_SEED': str(seed), 'VALE_FRAMES': str(_FRAMES)})
    return judges.returncode or _attackers(state, env)


def _attackers(state, env):
    """Run them, print what they print, and note what they saw."""
    command = [state.tool('python'), '-m', 'clickos_lab.suites.attack']
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE,
                          text=True) as attack:
        for line in attack.stdout:
            print(line, end='', flush=True)
            if line.startswith(_SEEN):
                progress.note(line.removeprefix(_SEEN).strip())
    return attack.returncode


def _in_lab(module, *arguments):
    """Return a part that starts a lab with TLS and runs Tempest there."""
    def run(_names):
        state = paths.State()
        prepare.everything(state)
        return subprocess.run(
            [state.tool('python'), '-m', f'clickos_lab.suites.{module}',
             *arguments], cwd=paths.REPO,
            env={**os.environ, **rust.environment(state),
                 'CLICKOS_TLS': '1'}).returncode
    return run


def _on_xen(names):
    """Run Tempest's own tests of Nova with a Xen host, in QEMU."""
    return _in_lab('compute', '--xen')(names)


def _nova_move(names):
    """Move a guest by Nova's driver, which needs the virtual environment."""
    state = paths.State()
    prepare.everything(state)
    return subprocess.run(
        [state.tool('python'), '-m', 'clickos_lab.suites.xen', *names],
        cwd=paths.REPO,
        env={**os.environ, **rust.environment(state)}).returncode


def _alone(_names):
    """Run patched tools of Xen with simulated guests, without Xen."""
    state = paths.State()
    state.create()
    found = xen_paths.XenPaths(state)
    found.create()
    with found.lock():
        xen_packages.ensure(found)
    return xen.run(list(ALONE))


def _rings(_names):
    """Let guests write garbage into their rings for minutes."""
    progress.note(f'{_HOSTILE_SECONDS} s of garbage')
    return _cargo_test('--release', '--package', 'valed', '--test',
                       'it', 'hostile_rings::', '--', '--nocapture',
                       HOSTILE_SECONDS=_HOSTILE_SECONDS)


def _loops(_names):
    """Send packets through random chains of random functions."""
    seed = secrets.randbelow(2 ** 32)
    progress.note(f'{_WORLDS} chains, seed {seed}')
    return _cargo_test('--release', '--package', 'valed', '--lib',
                       'packets_give', '--', '--nocapture',
                       VALE_WORLDS=_WORLDS, VALE_SEED=seed)


def _fuzz(_names):
    """Give each fuzz target more and other inputs than `make test` does."""
    seed = secrets.randbelow(2 ** 32)
    progress.note(f'{_INPUTS} inputs for each target, seed {seed}')
    return _cargo_test('--workspace', '--locked', '--test', 'fixed',
                       '--test', 'budget', FUZZ_RUNS=_INPUTS, FUZZ_SEED=seed)


def _seeds(_names):
    """Run all Rust tests with random inputs.

    proptest writes an input that fails into a folder proptest-regressions,
    which belongs into git.
    """
    seed = secrets.randbelow(2 ** 32)
    progress.note(f'seed {seed}')
    return _cargo_test('--workspace', '--locked', '--no-fail-fast',
                       PROPTEST_RNG_SEED=seed, FUZZ_SEED=seed, VALE_SEED=seed,
                       NOXEN_PREFIX=paths.State().noxen)


def _cargo_test(*arguments, **env):
    """Return the exit status of tests in Rust."""
    return subprocess.run(
        [prereq.rust_tool('cargo') or 'cargo', 'test', *arguments],
        cwd=paths.REPO, env={
            **os.environ, **rust.environment(paths.State()),
            **{name: str(value) for name, value in env.items()}}).returncode


def _gate(_names):
    """Run what `make test` runs under load, then try each bound."""
    state = paths.State()
    prepare.everything(state)
    return subprocess.run(
        [state.tool('python'), '-m', 'clickos_lab.suites.gate'],
        cwd=paths.REPO).returncode


#: Parts that a suite describes, by its module.
_SUITES = ('again-up', 'attack', 'compute', 'debian13', 'faults', 'gate',
           'openstack-2026-1', 'packages', 'races', 'reads', 'tempest',
           'upgrade', 'xen', 'xen-hosts')
#: Parts that are not tests on a Xen host, or need more than those.
_OTHERS = {
    'gate': _gate,
    'attack': _attack,
    'packages': lambda _names: packages.main(),
    'debian13': lambda _names: debian13.main(),
    'openstack-2026-1': lambda _names: openstack_2026_1.main(),
    'xen': lambda _names: xen.main([], slow=True),
    'xen-tools': _alone,
    'nova-move': _nova_move,
    'compute': _in_lab('compute'), 'compute-xen': _on_xen,
    'rings': _rings, 'loops': _loops,
    'fuzz': _fuzz,
    'seeds': _seeds,
    'races': lambda _names: races.main(),
    'xen-hosts': _in_lab('xen_hosts'),
    'reads': _in_lab('reads'),
    'tempest': _in_lab('tempest', '--regex',
                       r'^(?!.*\.(Outages|BesideHeat))clickos_tempest_plugin'),
    'again-up': _in_lab('again_up'), 'upgrade': _in_lab('upgrade'),
    'faults': _in_lab('faults')}


def main(names):
    """Run the parts named, or all; print what goes into the record."""
    known = list(dict.fromkeys((*PARTS, *_OTHERS)))
    if names == ['help']:
        for name in known:
            print(f'{name}: {meaning(name)}')
        return 0
    unknown = set(names) - set(known)
    if unknown:
        print(f'error: {", ".join(sorted(unknown))}: no such part; there are '
              f'{", ".join(known)}')
        return 2
    commit = progress.commit()
    rows = [_run(name, commit) for name in names or known]
    print('| part | result | minutes | seen | date, commit |')
    print('|---|---|---|---|---|')
    for row in rows:
        print(f'| {" | ".join(row)} |')
    return 0 if all(row[1] == 'passed' for row in rows) else 1


def meaning(name):
    """Return what a part does, by the first line that documents it."""
    if name in _SUITES:
        module = f'clickos_lab.suites.{name.replace("-", "_")}'
    elif name in PARTS:
        module = PARTS[name]
    else:
        return _OTHERS[name].__doc__.partition('\n')[0]
    file = paths.REPO / 'devstack/lab' / f'{module.replace(".", "/")}.py'
    text = ast.get_docstring(ast.parse(file.read_text()))
    # Behind the command, if the line begins with it.
    return re.sub('^``[^`]+``: ', '', text.partition('\n')[0])


def _run(name, commit):
    """Run a part and note that it passed; return its row."""
    progress.notes.clear()
    began_s = time.monotonic()
    run = _OTHERS.get(name, xen.main)
    try:
        status = run([PARTS.get(name)])
    except errors.LabError as e:    # other parts may have what they need
        print(f'error: {name}: {e}')
        status = 1
    seconds = time.monotonic() - began_s
    if status == 0:
        results.record([(f'soak {name}', seconds)], commit)
    return (f'`{name}`', 'FAILED' if status else 'passed',
            f'{seconds / 60:.0f}', '; '.join(progress.notes),
            f'{results.today()}, {commit}')


if __name__ == '__main__':
    os.umask(0o077)
    sys.exit(main(sys.argv[1:]))

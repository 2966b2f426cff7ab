# SPDX-License-Identifier: Apache-2.0
"""``make soak``: hours on a Xen host or the lab, and rows for the record.

``python -m clickos_lab.suites.soak [PART ...]``, the parts as below.
"""

import datetime
import os
import subprocess
import sys
import time

from clickos_lab import paths
from clickos_lab import prepare
from clickos_lab import shell
from clickos_lab.suites import progress
from clickos_lab.suites import xen

PARTS = {
    'routers': 'tests.soak.test_routers',
    'many': 'tests.soak.test_many',
    'cycles': 'tests.soak.test_cycles',
    'thousand': 'tests.soak.test_thousand',
    'parallel': 'tests.soak.test_parallel'}


def _attack(_names):
    """Run on the lab, whose programs need the virtual environment."""
    state = paths.State()
    prepare.everything(state)
    return subprocess.run([state.tool('python'), '-m',
                           'clickos_lab.suites.attack']).returncode


#: Parts that are not tests on a Xen host.
_OTHERS = {'attack': _attack}


def main(names):
    """Run the parts named, or all; print what goes into the record."""
    known = [*PARTS, *_OTHERS]
    unknown = set(names) - set(known)
    if unknown:
        print(f'error: {", ".join(sorted(unknown))}: no such part; there are '
              f'{", ".join(known)}')
        return 2
    rows = [_run(name) for name in names or known]
    print('| part | result | minutes | seen | date, commit |')
    print('|---|---|---|---|---|')
    for row in rows:
        print(f'| {" | ".join(row)} |')
    return 0 if all(row[1] == 'passed' for row in rows) else 1


def _run(name):
    """Run a part; return its row."""
    commit = _commit()
    progress.notes.clear()
    began_s = time.monotonic()
    run = _OTHERS.get(name, xen.main)
    status = run([PARTS.get(name)])
    minutes = (time.monotonic() - began_s) / 60
    return (f'`{name}`', 'FAILED' if status else 'passed', f'{minutes:.0f}',
            '; '.join(progress.notes), f'{datetime.date.today()}, {commit}')


def _commit():
    """Return the commit; a plus sign tells of changes since."""
    git = ['git', '-c', f'safe.directory={paths.REPO}', '-C', paths.REPO]
    commit = shell.output([*git, 'rev-parse', '--short', 'HEAD']).strip()
    changed = shell.output([*git, 'status', '--porcelain'])
    return commit + ('+' if changed else '')


if __name__ == '__main__':
    os.umask(0o077)
    sys.exit(main(sys.argv[1:]))

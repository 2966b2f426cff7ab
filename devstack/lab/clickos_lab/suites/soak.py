# SPDX-License-Identifier: Apache-2.0
"""``make soak``: an hour on a Xen host, and the line for the record."""

import datetime
import sys
import time

from clickos_lab import paths
from clickos_lab import shell
from clickos_lab.suites import xen

_TESTS = ['tests.soak.test_soak', 'tests.soak.test_cosmos']


def main():
    """Run the tests; print what goes into docs/specification.md."""
    began_s = time.monotonic()
    status = xen.main(_TESTS)
    minutes = (time.monotonic() - began_s) / 60
    print(f'| `make soak` | {"passed" if status == 0 else "FAILED"} in '
          f'{minutes:.0f} min, {datetime.date.today()}, at {_commit()} |')
    return status


def _commit():
    """Return the commit; a plus sign tells of changes since."""
    git = ['git', '-c', f'safe.directory={paths.REPO}', '-C', paths.REPO]
    commit = shell.output([*git, 'rev-parse', '--short', 'HEAD']).strip()
    changed = shell.output([*git, 'status', '--porcelain'])
    return commit + ('+' if changed else '')


if __name__ == '__main__':
    sys.exit(main())

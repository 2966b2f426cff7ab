# SPDX-License-Identifier: Apache-2.0
"""Builds the Debian packages twice and tries them in a fresh Debian."""

import os
import subprocess
import sys

from clickos_lab import debs
from clickos_lab import paths
from clickos_lab import prepare
from clickos_lab import processes


def main():
    """Return the exit status of the tests."""
    processes.clean_up_at_signals()
    state = paths.State()
    prepare.everything(state)
    prepare.packages(state)
    folders = [state.root / 'packages' / name for name in ('older', 'newer')]
    for number, folder in enumerate(folders, 1):
        for package in folder.glob('*.deb'):
            package.unlink()
        debs.build(state, folder, f'{debs.before_release()}.{number}')
    return run(state, *folders)


def run(state, older, newer):
    """Install, upgrade and remove packages; return the tests' exit status.

    :param older: folder with the packages of one version
    :param newer: folder with those that the older are upgraded to
    """
    folder = paths.REPO / 'devstack/lab'
    return subprocess.run(
        [state.tool('python'), '-m', 'unittest', '-v',
         'tests.packages.test_packages'], cwd=folder,
        env={**os.environ, 'PYTHONPATH': str(folder),
             'CLICKOS_STATE': str(state.root),
             'CLICKOS_PACKAGES': f'{older}:{newer}'}).returncode


if __name__ == '__main__':
    sys.exit(main())

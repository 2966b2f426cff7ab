# SPDX-License-Identifier: Apache-2.0
"""Builds the Debian packages twice and tries them in a fresh Debian.

The package of patched Xen is tried, too, where its sources are to be had.
``python -m clickos_lab.suites.packages xen`` tries that one only, and
``build`` only builds the others.
"""

import os
import subprocess
import sys

from clickos_lab import debian
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
    if sys.argv[1:] == ['build']:
        _build(state)
        return 0
    failed = 0 if sys.argv[1:] == ['xen'] else _try_life(state)
    return failed or _try_xen(state)


def folders(root):
    """Return the folders of two versions of the packages, older first.

    :param root: a state folder
    """
    return [root / 'packages' / name for name in ('older', 'newer')]


def _build(state):
    for number, folder in enumerate(folders(state.root), 1):
        for package in folder.glob('*.deb'):
            package.unlink()
        debs.build(state, folder, f'{debs.before_release()}.{number}')


def _try_life(state):
    _build(state)
    return run(state, *folders(state.root))


def _try_xen(state):
    """Try the package of patched Xen; 0 where it cannot be built."""
    if not prepare.xen_package(state):
        return 0
    folder = state.root / 'packages/xen'
    for package in folder.glob('*.deb'):
        package.unlink()
    debs.build(state, folder, names=(*debs.NAMES, debs.XEN))
    return _run(state, 'test_xen_package', folder)


def run(state, older, newer, release=None, noxen=None):
    """Install, upgrade and remove packages; return the tests' exit status.

    :param older: folder with the packages of one version
    :param newer: folder with those that the older are upgraded to
    :param release: of Debian, by default this machine's
    :param noxen: folder with that Debian's xenstored
    """
    return _run(state, 'test_packages', older, newer,
                number=(release or debian.here()).number,
                noxen=noxen or state.noxen)


def _run(state, module, *folders, number=debian.here().number, noxen=''):
    lab = paths.REPO / 'devstack/lab'
    return subprocess.run(
        [state.tool('python'), '-m', 'unittest', '-v',
         f'tests.packages.{module}'], cwd=lab,
        env={**os.environ, 'PYTHONPATH': str(lab),
             'CLICKOS_STATE': str(state.root),
             'CLICKOS_DEBIAN': number, 'CLICKOS_NOXEN': str(noxen),
             'CLICKOS_PACKAGES': ':'.join(map(str, folders))}).returncode


if __name__ == '__main__':
    sys.exit(main())

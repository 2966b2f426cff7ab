# SPDX-License-Identifier: Apache-2.0
"""Installs the files of a release, and upgrades to them."""

import os
import pathlib
import shutil
import tempfile

from clickos_lab.checks import wheel
from clickos_lab import distribution
from clickos_lab import log
from clickos_lab.release import tree
from clickos_lab import shell
from clickos_lab.suites import packages

#: The packages that an upgrade begins with, built by this commit's own code.
BASELINE = 'abf4122d'


def baseline(folder):
    """Build the Debian packages of BASELINE into a folder, once.

    The folder ``make packages`` fills depends on the commit's own code, and
    so do the packages: they are what a host has that followed the guide.
    """
    done = folder / 'packages'
    if done.is_dir():
        return done
    sources, state = folder / 'tree', folder / 'state'
    with log.step(f'packages of {BASELINE}, by its own make packages'):
        tree.check_out(sources, BASELINE)
        shell.run(['make', '-C', sources, 'packages'], folder / 'make.log',
                  env={**os.environ, 'CLICKOS_STATE': str(state)},
                  timeout_s=3600, quiet=True)
        (state / 'packages').rename(done)
        shutil.rmtree(state)
        tree.remove(sources)
    return done


def run(state, folder, older):
    """Try all files of a release; return how many trials failed.

    :param folder: with the files
    :param older: folder with the Debian packages of BASELINE
    """
    failed = 0
    for what, trial in (
            ('the source archive builds the same wheel', _same_wheel),
            ('the wheel works in empty environments', _wheel),
            ('the Debian packages have the same wheel', _wheel_of_agent),
            ('the Debian packages install, upgrade and go', _packages)):
        with log.step(what):
            is_good = trial(state, folder, older)
        log.info(f'{what}: {"passed" if is_good else "FAILED"}')
        failed += not is_good
    return failed


def _same_wheel(state, folder, _older):
    """The archive holds its version, so pbr needs none from outside."""
    (archive,) = folder.glob('clickos_openstack-*.tar.gz')
    with tempfile.TemporaryDirectory() as scratch:
        rebuilt = distribution.build(state, '--wheel', archive,
                                     pathlib.Path(scratch), dict(os.environ))
        return rebuilt.read_bytes() == _the_wheel(folder).read_bytes()


def _wheel(_state, folder, _older):
    return wheel.main([_the_wheel(folder)]) == 0


def _wheel_of_agent(_state, folder, _older):
    (package,) = folder.glob('clickos-agent_*.deb')
    held = _the_wheel(folder)
    with tempfile.TemporaryDirectory() as scratch:
        shell.output(['dpkg-deb', '-x', package, scratch])
        (other,) = pathlib.Path(scratch).rglob(held.name)
        return other.read_bytes() == held.read_bytes()


def _packages(state, folder, older):
    return packages.run(state, older, folder) == 0


def _the_wheel(folder):
    (path,) = folder.glob('*.whl')
    return path

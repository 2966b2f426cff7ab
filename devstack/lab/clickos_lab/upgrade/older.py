# SPDX-License-Identifier: Apache-2.0
"""The parts of the previous release, built from its last commit."""

import os
import shutil
import tarfile
import tempfile

from clickos_lab.config import options
from clickos_lab import distribution
from clickos_lab import errors
from clickos_lab import log
from clickos_lab import prereq
from clickos_lab.release import tree
from clickos_lab import rust
from clickos_lab import shell
from clickos_lab import stamps
from clickos_lab import venv

#: The release that an upgrade begins with, and its commit.
VERSION, COMMIT = '0.3.0', '3bfc6b2b'
#: Names another commit, as VERSION:COMMIT.
VARIABLE = 'UPGRADE_FROM'
#: What the packages of a process host install.
PROGRAMS = ('clickos-process', 'cosmosd', 'cosmos', 'valed', 'vale-ctl',
            'pkt-gen')


def install(state, wheel, folder):
    """Install a wheel into a folder of its own.

    Programs that have the folder in PYTHONPATH prefer it to the packages of
    the virtual environment.
    """
    shell.run([venv.uv(state), 'pip', 'install', '--python',
               state.tool('python'), '--no-deps', '--target', folder, wheel],
              state.log / 'venv.log')
    shell.output(['chmod', '-R', 'go+rX', folder])


class Older:
    """Sources, programs and Python packages of a release.

    :param folder: that holds them
    :ivar devstack: the descriptions of its configurations
    :ivar templates: its catalog of VNFs
    """

    def __init__(self, folder):
        wanted = os.environ.get(VARIABLE) or f'{VERSION}:{COMMIT}'
        self.version, _, self._commit = wanted.partition(':')
        self._folder = folder / self.version
        self._tree = self._folder / 'tree'
        self.programs = self._folder / 'programs'
        self.python = self._folder / 'python'
        self.devstack = self._tree / 'devstack'
        self.templates = self._tree / 'vnfd-templates'

    def ensure(self, state):
        """Build it, once.

        :raises LabError: if the repository lacks the commit
        """
        stamp = self._folder / 'made.stamp'
        if stamps.fresh(stamp, self._commit):
            return
        with log.step(f'parts of {self.version} ({self._commit})'):
            shutil.rmtree(self._folder, ignore_errors=True)
            self._check_out()
            self._build_programs(state)
            self._install_python(state)
        stamp.write_text(self._commit)

    def _check_out(self):
        """Write the files of the commit into a folder without git."""
        self._tree.mkdir(parents=True)
        with tempfile.TemporaryDirectory() as scratch:
            archive = f'{scratch}/tree.tar'
            try:
                tree.git('archive', '--output', archive, self._commit)
            except errors.LabError as e:
                raise errors.LabError(
                    f'{self._commit} ({self.version}): not in this '
                    f'repository; fetch its history: {e}')
            with tarfile.open(archive) as packed:
                packed.extractall(self._tree, filter='data')

    def _build_programs(self, state):
        target = self._folder / 'target'
        names = [word for name in PROGRAMS for word in ('-p', name)]
        shell.run([prereq.rust_tool('cargo'), 'build', '--release',
                   '--locked', '--bins', *names], self._folder / 'cargo.log',
                  env={**rust.environment(state),
                       'CARGO_TARGET_DIR': str(target)},
                  cwd=self._tree, timeout_s=7200)
        self.programs.mkdir()
        for name in PROGRAMS:
            shutil.copy2(target / 'release' / name, self.programs)
        shutil.rmtree(target)

    def _install_python(self, state):
        env = {**os.environ, 'PBR_VERSION': self.version}
        install(state, distribution.build(
            state, '--wheel', self._tree, self._folder, env), self.python)

    def configure(self):
        """Write configurations as this release describes them from now on."""
        options.use(self.devstack)

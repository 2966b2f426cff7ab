# SPDX-License-Identifier: Apache-2.0
"""Builds packages in a fresh Debian 13, tries them there, and the main job.

The root has Debian's Python, libxl, MariaDB and RabbitMQ. It has this
repository at its own path and a state folder of its own. Rust's compiler, and
programs that it has built already, are those of this machine.
"""

import os
import pathlib
import shutil
import sys

from clickos_lab import debian
from clickos_lab import debian_root
from clickos_lab import errors
from clickos_lab import log
from clickos_lab import paths
from clickos_lab import prepare
from clickos_lab import prereq
from clickos_lab import shell
from clickos_lab.suites import packages

_RELEASE = debian.RELEASES['13']
_LOG = 'debian13.log'
#: Those of this machine, which the root has.
_CERTIFICATES = '/etc/ssl/certs/ca-certificates.crt'
#: What the lab does not install, because it starts with it.
_BUILD = """
apt-get update
apt-get install -y --no-install-recommends make git python3
{enter}
cargo fetch --locked
make build
PYTHONPATH=devstack/lab python3 -m clickos_lab.suites.packages build
"""
#: systemd-nspawn lets its machine read them only; guests are bounded there.
_GROUPS = 'for d in /sys/fs/cgroup /sys/fs/cgroup/*/; do ' \
    'mount -o remount,bind,rw "$d"; done 2>/dev/null'
_JOB = '{enter} && python3 -c "import sys; print(sys.version)" && ' \
    'cat /etc/debian_version && make test SUITES=cloud'
_JOB_S = 5400


def main():
    """Return the exit status of the tests; a failure leaves the logs."""
    state = paths.State()
    prepare.everything(state)
    place = _Place(state)
    place.make()
    status = int(any([place.main_job(), place.packages()]))
    if status == 0:
        shutil.rmtree(place.inner)
    return status


class _Place:
    """The root, and the folder that is its state folder."""

    def __init__(self, state):
        self._state = state
        self._folder = state.root / 'packages'
        self.inner = self._folder / 'debian13'
        self._log = self.inner / 'log' / _LOG

    def make(self):
        """Make the state folder afresh."""
        shutil.rmtree(self.inner, ignore_errors=True)
        for name in ('log', 'target'):
            (self.inner / name).mkdir(parents=True)
        (self.inner / paths.MARK).touch()
        shell.output(['cp', '-a', self._state.target / 'release',
                      self.inner / 'target'], timeout_s=600)

    def _mounts(self):
        """Return the options that bring repository, state and compiler."""
        return (f'--bind-ro={paths.REPO}', f'--bind-ro={_git_folder()}',
                f'--bind={self.inner}:{self._state.root}',
                f'--bind-ro={_sysroot()}', f'--bind={_cargo_home()}')

    def _enter(self):
        """Return the line with which a script enters the repository."""
        state = self._state.root
        return (f'export PATH={_sysroot()}/bin:$PATH HOME=/root '
                f'CARGO_HOME={_cargo_home()} UV_CACHE_DIR={state}/uv-cache '
                f'CLICKOS_STATE={state} DEBIAN_FRONTEND=noninteractive '
                f'SSL_CERT_FILE={_CERTIFICATES} '
                f'PYTHONDONTWRITEBYTECODE=1 && cd {paths.REPO}')

    def main_job(self):
        """Build all, then run the main job; return the exit status."""
        build = _BUILD.format(enter=self._enter())
        job = _JOB.format(enter=self._enter())
        with log.step(f'main job on Debian {_RELEASE.number}'), \
                debian_root.DebianRoot(
                    self._state, self._folder / 'root', _RELEASE,
                    self._mounts(), build) as machine:
            try:
                log_file = f'{self._state.log}/{_LOG}'
                machine.run(f'{_GROUPS}; ({job}) >{log_file} 2>&1',
                            timeout_s=_JOB_S)
            except errors.LabError:
                print(shell.tail(self._log, 40))
                return 1
        print(shell.tail(self._log, 20))
        return 0

    def packages(self):
        """Try the packages that the root has built; return the status."""
        return packages.run(self._state, *packages.folders(self.inner),
                            _RELEASE, self.inner / 'noxen')


def _git_folder():
    """Return where git keeps the commits, also of a worktree."""
    return shell.output(['git', '-c', f'safe.directory={paths.REPO}', '-C',
                         paths.REPO, 'rev-parse', '--path-format=absolute',
                         '--git-common-dir']).strip()


def _sysroot():
    return shell.output([prereq.rust_tool('rustc'), '--print',
                         'sysroot']).strip()


def _cargo_home():
    return pathlib.Path(os.environ.get('CARGO_HOME')
                        or '~/.cargo').expanduser()


if __name__ == '__main__':
    sys.exit(main())

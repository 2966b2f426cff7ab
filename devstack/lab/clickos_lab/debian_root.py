# SPDX-License-Identifier: Apache-2.0
"""A fresh Debian that boots with its own systemd, for tests of packages."""

import os
import pathlib
import shutil
import signal
import subprocess
import time

from clickos_lab import apt
from clickos_lab import debian
from clickos_lab import errors
from clickos_lab import log
from clickos_lab import shell
from clickos_lab import stamps

TOOLS = ('debootstrap', 'systemd-container')
_INCLUDED = 'systemd,systemd-sysv,dbus,ca-certificates,iproute2,iputils-ping'
#: systemd-nspawn refuses it; cosmosd takes over rings of a guest with it.
_CALLS = 'pidfd_getfd'
#: A machine of its own has udev, which makes the device with these rights.
_DEVICES = 'rm -f /dev/net/tun && mknod -m 0666 /dev/net/tun c 10 200'
#: Files of this machine with which apt finds Debian's packages.
_SOURCES = 'etc/apt/sources.list.d/debian.sources'
_OURS = ('etc/apt/apt.conf.d', _SOURCES,
         'etc/ssl/certs/ca-certificates.crt', 'etc/resolv.conf')


class DebianRoot:
    """A root folder and the machine that boots from it.

    :param folder: is removed and created again; its parent keeps a plain root
    :param release: of Debian, by default this machine's
    :param mounts: options of systemd-nspawn that bring other folders
    :param first: a script that runs before the boot, with this machine's
        network
    """

    def __init__(self, state, folder, release=None, mounts=(), first=''):
        self._state = state
        self._release = release or debian.here()
        self._plain = folder.parent / f'plain-{self._release.name}'
        self._mounts = mounts
        self._first = first
        self.root = folder
        self._machine = None

    def __enter__(self):
        self._make_plain()
        shutil.rmtree(self.root, ignore_errors=True)
        shell.output(['cp', '-a', self._plain, self.root], timeout_s=300)
        if self._first:
            shell.run([*self._enter(), '--as-pid2', 'sh', '-ec', self._first],
                      self._state.log / 'debian.log', timeout_s=7200)
        self._machine = subprocess.Popen(
            [*self._enter(), '--private-network', '-b'],
            start_new_session=True, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL)
        try:
            self._await_boot()
            self.run(_DEVICES)
        except BaseException:
            self.__exit__()
            raise
        return self

    def _enter(self):
        """Return the command that enters the root."""
        return ['systemd-nspawn', '--register=no', '--keep-unit', '--quiet',
                '--capability=all', f'--system-call-filter={_CALLS}',
                '--resolv-conf=off', '-D', self.root, *self._mounts]

    def __exit__(self, *_):
        leader = self._leader()
        if leader:
            # systemd ends at once: systemd(1), SIGRTMIN+4 powers off.
            os.kill(leader, signal.SIGRTMIN + 4)
        self._machine.wait(60)
        shutil.rmtree(self.root)

    def _make_plain(self):
        stamp = self._plain / 'made'
        wanted = f'{self._release.name} {_INCLUDED}'
        if stamps.fresh(stamp, wanted):
            return
        apt.ensure(self._state, TOOLS)
        shutil.rmtree(self._plain, ignore_errors=True)
        with log.step(f'root of Debian {self._release.number}'):
            shell.run(['debootstrap', '--variant=minbase',
                       f'--include={_INCLUDED}', self._release.name,
                       self._plain],
                      self._state.log / 'debootstrap.log')
            for name in _OURS:
                self._copy(pathlib.Path('/') / name)
            self._choose_release()
            # dpkg waits for the disk after each file of a root that is lost.
            (self._plain / 'etc/dpkg/dpkg.cfg.d/fast').write_text(
                'force-unsafe-io\n')
        (self._plain / 'etc/apt/sources.list').unlink(missing_ok=True)
        stamp.write_text(wanted)

    def _choose_release(self):
        """Let apt find the root's release where it finds this machine's."""
        sources = self._plain / _SOURCES
        sources.write_text(sources.read_text().replace(
            debian.here().name, self._release.name))

    def _copy(self, source):
        target = self._plain / str(source).lstrip('/')
        if source.is_dir():
            shutil.copytree(source, target, dirs_exist_ok=True)
        elif source.exists():
            target.unlink(missing_ok=True)
            shutil.copy(source, target)

    def _leader(self):
        """Return the process that is the machine's first."""
        listed = subprocess.run(['pgrep', '-P', str(self._machine.pid)],
                                capture_output=True, text=True).stdout
        return int(listed.split()[0]) if listed else None

    def _await_boot(self, timeout_s=60):
        deadline_s = time.monotonic() + timeout_s
        while time.monotonic() < deadline_s:
            if self._leader() and self.run(
                    'systemctl is-system-running', check=False) in (
                        'running', 'degraded'):
                return
            time.sleep(0.5)
        raise errors.LabError(f'{self.root}: no boot after {timeout_s} s')

    def install(self, packages):
        """Install or upgrade package files; apt gets what they depend on.

        The machine has no network, so apt runs in a chroot first, for the
        dependencies alone.
        """
        folder = self.root / 'packages'
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        for path in packages:
            shutil.copy(path, folder)
        self._download()
        return self.run('DEBIAN_FRONTEND=noninteractive apt-get install -y '
                        '--no-install-recommends '
                        '/packages/*.deb', timeout_s=900)

    def _download(self):
        shell.run(['chroot', self.root, 'sh', '-c',
                   'apt-get update && apt-get install -y --download-only '
                   '--no-install-recommends /packages/*.deb'],
                  self._state.log / 'packages.log')

    def run(self, script, check=True, timeout_s=300):
        """Run a shell script in the machine; return its output.

        :raises LabError: if it fails and ``check`` is set
        """
        done = subprocess.run(
            ['nsenter', '-t', str(self._leader()), '-m', '-u', '-i', '-n',
             '-p', '-C', '-r', '-w', '--', 'sh', '-c', script],
            capture_output=True, text=True, timeout=timeout_s,
            env={'PATH': '/usr/sbin:/usr/bin:/sbin:/bin', 'LC_ALL': 'C'})
        if check and done.returncode:
            raise errors.LabError(f'{script}: {done.stdout}{done.stderr}')
        return done.stdout.strip()

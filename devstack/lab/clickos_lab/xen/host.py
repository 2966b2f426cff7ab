# SPDX-License-Identifier: Apache-2.0
"""A Xen host that runs in QEMU: start, stop, logs."""

import contextlib
import re
import shutil
import time

from clickos_lab import errors
from clickos_lab import processes
from clickos_lab.xen import files as _files
from clickos_lab.xen import keys
from clickos_lab.xen import qmp
from clickos_lab.xen import remote
from clickos_lab.xen import xen_paths

#: What dom0's first process prints when everything runs.
_READY = 'lab: ready'
_BOOT_S = 180
#: A busy machine took longer than a minute for the files of a toolstack.
_UNPACK_S = 240
_CONNECT_S, _CONNECTIONS = 30, 3
_QEMU, _SSH = 'qemu', 'ssh'
_ENV = {'PATH': '/usr/sbin:/usr/bin:/sbin:/bin', 'LANG': 'C.UTF-8'}


class Host:
    """One host, found by its name; ``dom0`` runs commands in it."""

    def __init__(self, places, name):
        self._paths = places
        self.name = name
        self.places = places.host(name)
        self._processes = processes.Processes(self.places)
        self.dom0 = remote.Remote(self.places)

    def running(self):
        """Return whether the machine runs."""
        return self._processes.find(_QEMU) is not None

    def boot(self, machine, memory):
        """Boot it and wait until dom0 is ready: ten seconds or more.

        :param memory: the file that becomes the machine's memory
        """
        self._make_folder()
        self._boot(machine, memory)

    def boot_and_connect(self, machine, files=None):
        """Boot a machine that differs from that of the snapshot."""
        unpack = self._make_folder(files)
        self._boot(machine, self.places.root / 'memory')
        with self._stopped_on_error():
            self.connect()
            self.dom0.check(unpack, _UNPACK_S)

    def _boot(self, machine, memory):
        memory = f'mem-path={self._paths.relative(memory)},share=on'
        self._start(machine, memory, True)
        with self._stopped_on_error():
            self._processes.wait(_QEMU, self._is_ready, _BOOT_S)

    def restore(self, snapshot, files=None, taps=()):
        """Start it from a snapshot and connect: a second or two.

        :param files: :class:`files.Files` that will be in dom0
        :param taps: interfaces to be made here for its uplinks
        """
        memory = f'mem-path={self._paths.relative(snapshot.memory)},share=off'
        unpack = self._make_folder(files)
        self._start(snapshot.machine, memory, False, taps)
        with self._stopped_on_error():
            with self.qmp() as control:
                snapshot.load(control)
            self.connect()
            # The machine's clock stood still since it was saved.
            self.dom0.check(f'date -s @{time.time():.0f}; {unpack}',
                            _UNPACK_S)

    def _make_folder(self, files=None):
        """Make the host's folder; return the script that unpacks files."""
        if self.running():
            raise errors.LabError(f'{self.name}: this Xen host runs already')
        shutil.rmtree(self.places.root, ignore_errors=True)
        self.places.log.mkdir(parents=True)
        return (files or _files.Files()).write(self.places.files)

    def _start(self, machine, memory, boot, taps=()):
        command = machine.command(self._paths, self.places, memory, boot,
                                  taps)
        with self._stopped_on_error():
            self._processes.start(_QEMU, command, _ENV,
                                  cwd=self._paths.root)
            self._processes.wait(_QEMU, self.places.qmp.exists, 30)

    def connect(self):
        """Open the connection all commands in dom0 share.

        On a busy machine one was seen that never came about: the next one
        does.
        """
        config = keys.ssh_config(self._paths, self._ssh_port())
        self.places.ssh_config.write_text(config)
        for left in reversed(range(_CONNECTIONS)):
            self._processes.start(_SSH, self.dom0.master(), _ENV,
                                  cwd=self.places.root)
            try:
                self._processes.wait(_SSH, self.dom0.connected, _CONNECT_S)
                return
            except errors.LabError:
                if not left:
                    raise
                self._processes.stop([_SSH])

    def _ssh_port(self):
        with self.qmp() as control:
            text = control.human('info usernet')
        found = re.search(r'HOST_FORWARD\S*\s+\d+\s+127\.0\.0\.1\s+(\d+)',
                          text)
        if not found:
            raise errors.LabError(f'QEMU forwards no port:\n{text}')
        return int(found[1])

    def _is_ready(self):
        console = self.places.console
        return console.exists() and \
            _READY in console.read_text(errors='replace')

    @contextlib.contextmanager
    def _stopped_on_error(self):
        try:
            yield
        except BaseException:
            self.stop()
            raise

    def qmp(self):
        """Return a connection to QEMU's control socket."""
        return qmp.Qmp(self.places.qmp)

    def collect(self, folder):
        """Copy the console, Xen's messages and dom0's logs into a folder.

        A broken host may not give some files; they are left out.
        """
        folder.mkdir(parents=True, exist_ok=True)
        if self.places.console.exists():
            shutil.copy(self.places.console, folder)
        with contextlib.suppress(errors.LabError):
            self.dom0.get_tree('/var/log', folder)
            (folder / 'xl-dmesg.log').write_text(
                self.dom0.check('xl dmesg; dmesg'))

    def stop(self):
        """End it; may be called twice."""
        self._processes.stop([_SSH, _QEMU])

    def kill(self):
        """End it as a power cut does."""
        self._processes.kill(_QEMU)
        self.stop()

    def remove(self):
        """End it and remove its folder."""
        self.stop()
        shutil.rmtree(self.places.root, ignore_errors=True)


def remove_all(state):
    """End every host of a state folder."""
    places = xen_paths.XenPaths(state)
    for name in places.names():
        Host(places, name).remove()

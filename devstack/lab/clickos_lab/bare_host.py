# SPDX-License-Identifier: Apache-2.0
"""Hosts without OpenStack, and machines at their switches.

Importing this module needs nothing but cosmos_client and Python.
"""

import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

import cosmos_client

from clickos_lab import errors
from clickos_lab import guardian
from clickos_lab import paths
from clickos_lab import processes
from clickos_lab import shell


def run(*command):
    """Run a command to its end.

    :raises LabError: if it fails
    """
    shell.output(command)


class Host:
    """Store, switch and cosmosd in a folder.

    :param first_uid: of the range whose members the guests become
    :param stack: an ExitStack that ends everything
    :param guests: that the host takes, of 16 MiB each
    :param workers: the switch's forwarding threads
    """

    def __init__(self, state, name, first_uid, stack, guests=16, workers=1):
        self.name, self._limit, self._workers = name, guests, workers
        self.folder = pathlib.Path(stack.enter_context(
            tempfile.TemporaryDirectory()))
        self.folder.chmod(0o755)
        self.guardian = guardian.Guardian(self.folder, stack)
        self._state, self._stack = state, stack
        self._write(first_uid)
        noxen = paths.REPO / 'cosmos/noxen/xenstored.sh'
        self._start([noxen, state.noxen, self.folder / 'xenstore'],
                    'xenstore/socket')
        for daemon in ('valed', 'cosmosd'):
            self._start([state.binary(daemon), '--config',
                         self.folder / f'{daemon}.toml'], f'{daemon}.sock')
        self.client = cosmos_client.CosmosClient(
            self.folder / 'cosmosd.sock', 10)
        stack.callback(self._end_guests)

    def _write(self, first_uid):
        place = self.folder
        (place / 'valed.toml').write_text(
            f'socket = "{place}/valed.sock"\n'
            f'xenstore = "{place}/xenstore/socket"\n'
            f'workers = {self._workers}\n')
        engine = self._state.binary('clickos-process')
        (place / 'cosmosd.toml').write_text(
            f'socket = "{place}/cosmosd.sock"\nstate_dir = "{place}/state"\n'
            f'valed_socket = "{place}/valed.sock"\n'
            f'xenstore_dir = "{place}/xenstore"\nhost_kind = "process"\n'
            f'memory_mib = {16 * self._limit}\n'
            f'max_guests = {self._limit}\n'
            f'process = {{ engine = "{engine}", first_uid = {first_uid}, '
            'cgroup = "" }\n[roles]\nnova = [64001]\nagent = [64002]\n')

    def _start(self, command, socket):
        log = (self.folder / 'log').open('ab')
        with processes.deferred():
            # Ctrl-C reaches this program only, which ends the guests first.
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL,
                                       stdout=log, stderr=log,
                                       start_new_session=True)
            self._stack.callback(process.wait)
            self._stack.callback(process.kill)
            self._stack.callback(log.close)
        end_s = time.monotonic() + 20
        while not (self.folder / socket).exists():
            if time.monotonic() > end_s or process.poll() is not None:
                raise errors.LabError((self.folder / 'log').read_text())
            time.sleep(0.02)

    def _end_guests(self):
        """Destroy the guests; one that cosmosd cannot end is killed."""
        try:
            for guest in self.client.call('list')['guests']:
                self.client.call('destroy', uuid=guest['uuid'])
        finally:
            for pid in self.guest_pids():
                os.kill(pid, signal.SIGKILL)

    def guest_pids(self):
        """Return the processes of guests, which map a ring of this store."""
        ring = f'{self.folder}/xenstore/dom'
        return [int(entry.name) for entry in pathlib.Path('/proc').iterdir()
                if entry.name.isdigit() and ring in _maps_of_user(entry)]

    def switch(self, *command):
        """Give the switch a command."""
        run(self._state.binary('vale-ctl'), *command,
            f'--socket={self.folder}/valed.sock')

    def attach(self, port, ifname, segment, *more):
        """Make an interface a port of the switch."""
        self.switch('attach', f'vale0:{port}', '--kind=veth',
                    f'--ifname={ifname}', f'--segment={segment}', *more)


def _maps_of_user(entry):
    """Return proc(5) maps; nothing for a process of root, or a gone one."""
    try:
        return (entry / 'maps').read_text() if entry.stat().st_uid else ''
    except OSError:
        return ''


class Machine:
    """A namespace at a host's switch.

    :param name: of the namespace, at most 14 characters
    :param port: of the switch
    """

    def __init__(self, host, stack, name, port, segment, mac, ip):
        self.namespace, self._stack = name, stack
        self._outer = outer = f'{name}o'
        stack.callback(self._remove)
        run('ip', 'netns', 'add', name)
        run('ip', 'link', 'add', outer, 'type', 'veth', 'peer', 'name',
            'eth0', 'netns', name, 'address', mac)
        self.ip('address', 'add', f'{ip}/24', 'dev', 'eth0')
        self.ip('link', 'set', 'eth0', 'up')
        run('ip', 'link', 'set', outer, 'addrgenmode', 'none')
        run('ip', 'link', 'set', outer, 'up')
        host.attach(port, outer, segment, f'--mac={mac}')

    def _remove(self):
        """End what runs in the namespace, and delete it if it exists."""
        if not os.path.exists(f'/run/netns/{self.namespace}'):
            return
        pids = shell.output(['ip', 'netns', 'pids', self.namespace]).split()
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
        # The kernel deletes what is in a namespace some time later.
        if os.path.exists(f'/sys/class/net/{self._outer}'):
            run('ip', 'link', 'delete', self._outer)
        run('ip', 'netns', 'delete', self.namespace)

    def ip(self, *command):
        """Change an interface, address or route of the machine."""
        run('ip', '-n', self.namespace, *command)

    def start(self, script, *arguments):
        """Start a script of Python; it ends with the test."""
        process = subprocess.Popen(
            ['ip', 'netns', 'exec', self.namespace, sys.executable,
             '-c', script, *arguments], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True)
        self._stack.callback(process.__exit__, None, None, None)
        self._stack.callback(process.kill)
        return process

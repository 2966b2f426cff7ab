# SPDX-License-Identifier: Apache-2.0
"""A machine outside of Nova: a network namespace on a port of the switch.

::

    namespace [eth0] === veth === [v...] valed port [segment, MAC, addresses]
"""

import hashlib
import ipaddress
import json
import os
import re
import signal
import subprocess
import time

from clickos_lab.config import neutron
from clickos_lab import errors
from clickos_lab.host import uplinks
from clickos_lab import shell

_NAME = re.compile(r'[a-z0-9-]{1,15}')


class Endpoint:
    """A namespace and its switch port, both found by the name.

    :param name: of the namespace, at most 15 of a-z, 0-9 and ``-``.
    :param port: name of the switch port, by default that of the namespace.
    """

    def __init__(self, state, name, port=None, switch=neutron.SWITCH):
        if not _NAME.fullmatch(name):
            raise errors.LabError(
                f'{name}: a namespace is named with 1 to 15 of a-z, 0-9, -')
        self._state = state
        self.name = name
        self.port = f'{switch}:{port or name}'
        #: the outer end of the veth pair; interface names have 15 bytes
        self.outer = 'v' + hashlib.sha256(name.encode()).hexdigest()[:13]

    def add(self, segment, mac, address, gateway=None, allow=()):
        """Make the namespace and attach it; on an error nothing is left.

        :param address: with its prefix length, ``10.0.1.5/24``.
        :param allow: CIDRs it may send from, besides its address.
        """
        own = ipaddress.ip_network(ipaddress.ip_interface(address).ip)
        note = self._note()
        note.parent.mkdir(parents=True, exist_ok=True)
        note.write_text(self.port)
        try:
            self._make_namespace(mac, address, gateway)
            flags = [f'--allow={cidr}' for cidr in [own, *allow]]
            self._vale_ctl('attach', self.port, '--kind=veth',
                           f'--ifname={self.outer}', f'--segment={segment}',
                           f'--mac={mac}', *flags)
            uplinks.Uplinks(self._state).reach(segment)
        except BaseException:
            self.remove()
            raise

    def _make_namespace(self, mac, address, gateway):
        name, outer = self.name, self.outer
        _ip('netns', 'add', name)
        _ip('link', 'add', outer, 'type', 'veth', 'peer', 'name', 'eth0',
            'netns', name, 'address', mac)
        # No IPv6 address, so the kernel sends nothing of its own accord.
        _ip('link', 'set', outer, 'addrgenmode', 'none')
        _ip('-n', name, 'link', 'set', 'eth0', 'addrgenmode', 'none')
        _ip('-n', name, 'address', 'add', address, 'dev', 'eth0', 'nodad')
        _ip('-n', name, 'link', 'set', 'lo', 'up')
        _ip('-n', name, 'link', 'set', 'eth0', 'up')
        _ip('link', 'set', outer, 'up')
        if gateway:
            _ip('-n', name, 'route', 'add', 'default', 'via', gateway)

    def remove(self):
        """Remove port, processes and namespace; may be called twice."""
        problems = []
        for step in (lambda: self._vale_ctl('detach', self.port),
                     self._kill_processes, self._delete_links):
            try:
                step()
            except errors.LabError as e:
                problems.append(str(e))
        if problems:
            raise errors.LabError('; '.join(problems))
        self._note().unlink(missing_ok=True)

    def _note(self):
        """A file that tells ``make lab-down`` of this namespace."""
        return self._state.data / 'endpoints' / self.name

    @classmethod
    def remove_all(cls, state, prefix=''):
        """Remove every namespace of the lab whose name begins so."""
        for note in (state.data / 'endpoints').glob(f'{prefix}*'):
            switch, _, port = note.read_text().partition(':')
            cls(state, note.name, port, switch).remove()

    def _kill_processes(self):
        """End what runs inside: it would keep the namespace alive."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            pids = self._pids()
            for pid in pids:
                _kill(pid, number)
            deadline_s = time.monotonic() + 2
            while pids and self._pids() and time.monotonic() < deadline_s:
                time.sleep(0.05)

    def _pids(self):
        if not self.exists():
            return []
        listed = shell.output(['ip', 'netns', 'pids', self.name])
        return [int(word) for word in listed.split()]

    def _delete_links(self):
        if os.path.exists(f'/sys/class/net/{self.outer}'):
            _ip('link', 'delete', self.outer)
        if self.exists():
            _ip('netns', 'delete', self.name)

    def exists(self):
        """Return whether the namespace is there."""
        return os.path.exists(f'/run/netns/{self.name}')

    def counters(self):
        """Return the counters of the switch port."""
        ports = json.loads(self._vale_ctl('stats', self.port, '-o', 'json'))
        return ports[0]['counters']

    def command(self, *arguments):
        """Return the command line that runs a command inside."""
        return ['ip', 'netns', 'exec', self.name, *map(str, arguments)]

    def run(self, *arguments, timeout_s=60):
        """Run a command inside to its end; return the CompletedProcess."""
        return subprocess.run(
            self.command(*arguments), stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=timeout_s)

    def _vale_ctl(self, *arguments):
        return shell.output([
            self._state.binary('vale-ctl'),
            f'--socket={self._state.run}/valed/valed.sock', *arguments])


def _ip(*arguments):
    return shell.output(['ip', *arguments])


def _kill(pid, number):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass

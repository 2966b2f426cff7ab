# SPDX-License-Identifier: Apache-2.0
"""A process host with a client, a server and a firewall guest.

::

    client [eth0] === valed === firewall === valed === [eth0] server

Client and server are network namespaces, the firewall is a guest.
"""

import contextlib
import json
import os
import pathlib
import shlex
import subprocess
import sys
import time

from clickos_lab import bare_host
from clickos_lab import errors
from clickos_lab import log
from clickos_lab import pings
from clickos_lab import processes
from clickos_lab import shell
from clickos_lab.vnf import csar
from clickos_lab.vnf import http_server

GUEST = 'firewall'
#: The firewall's side, its network and its segment; the host there.
_SIDES = (('left', '10.9.1', 1, 'client'), ('right', '10.9.2', 2, 'server'))
SERVER_IP = '10.9.2.9'
OPEN = 'allow all'
_PATIENCE_S = 20
#: Seconds after which a request without an answer counts as blocked.
_REFUSED_S = 1


@contextlib.contextmanager
def opened(state):
    """Make a :class:`Place`; remove it, whatever happens, undisturbed."""
    undo = contextlib.ExitStack()
    try:
        yield Place(state, undo)
    finally:
        with processes.undisturbed():
            undo.close()


class Place:
    """Host, client and server; :meth:`create_guest` adds the firewall.

    :param undo: an ExitStack that removes everything
    """

    def __init__(self, state, undo):
        self._state, self._undo = state, undo
        with log.step('1. a host: Xen store, switch, toolstack'):
            self.host = bare_host.Host(
                state, 'try', 1_000_000_000 + os.getpid() * 100, undo,
                guests=1)
        self._env = {
            **os.environ, 'PATH': f'{state.bin}:{os.environ["PATH"]}',
            'COSMOSD_SOCKET': f'{self.host.folder}/cosmosd.sock',
            'VALED_SOCKET': f'{self.host.folder}/valed.sock'}
        with log.step('2. client and server, on ports of the switch'):
            self.client, self.server = (
                self._machine(*side) for side in _SIDES)
            self._serve()

    def _machine(self, _side, network, segment, name):
        """Make a namespace whose default route leads to the firewall."""
        made = bare_host.Machine(
            self.host, self._undo, f'{name}-{os.getpid()}', name, segment,
            f'02:00:00:09:{segment:02x}:09', f'{network}.9')
        made.ip('link', 'set', 'lo', 'up')
        made.ip('route', 'add', 'default', 'via', f'{network}.1')
        log.info(f'  {name}: {network}.9, namespace {made.namespace}')
        return made

    def _serve(self):
        """Serve a page on the server's port 80."""
        folder = self.host.folder / 'www'
        folder.mkdir()
        (folder / 'index.html').write_text('hello\n')
        self.start(self.server, sys.executable, http_server.__file__, 80,
                   cwd=folder)
        end_s = time.monotonic() + _PATIENCE_S
        while not self.output(self.server, 'ss', '-ltnH', 'sport = :80'):
            if time.monotonic() > end_s:
                raise errors.LabError(
                    f'{self.server.namespace}: no HTTP server after '
                    f'{_PATIENCE_S} s')
            time.sleep(0.02)

    def start(self, machine, *command, cwd='/'):
        """Start a program on a machine; it ends with the place."""
        with processes.deferred():
            process = subprocess.Popen(
                _inside(machine, *command), stdin=subprocess.DEVNULL,
                cwd=cwd, stdout=subprocess.PIPE, text=True,
                stderr=subprocess.DEVNULL, start_new_session=True)
            self._undo.callback(process.__exit__, None, None, None)
            self._undo.callback(process.kill)
        return process

    def create_guest(self):
        """Start the firewall, which passes everything."""
        folder = self.host.folder
        (folder / f'{GUEST}.click').write_text(configuration())
        (folder / f'{GUEST}.cfg').write_text(guest_file())
        self.command('cosmos', 'create', folder / f'{GUEST}.cfg')

    def command(self, *words):
        """Run a command, show it with its time, return what it printed.

        :raises LabError: if it fails
        """
        began_s = time.monotonic()
        text = shell.output(words, env=self._env)
        words = [os.path.basename(word) if isinstance(word, pathlib.Path)
                 else str(word) for word in words]
        log.info(f'  $ {shlex.join(words)}   '
                 f'({(time.monotonic() - began_s) * 1000:.0f} ms)')
        return text

    def run(self, where, words):
        """Run a command; return its end, a subprocess.CompletedProcess.

        :param where: ``client``, or ``host``
        """
        if where == 'client':
            words = _inside(self.client, *words)
        return subprocess.run(words, env=self._env, capture_output=True,
                              text=True, stdin=subprocess.DEVNULL,
                              timeout=_PATIENCE_S)

    def read(self, handler):
        """Return the value of a handler of the guest."""
        return shell.output(['cosmos', 'read', GUEST, handler],
                            env=self._env)

    def identity(self):
        """Return what no two starts of the guest have in common."""
        guest = json.loads(shell.output(
            ['cosmos', 'info', GUEST, '-o', 'json'], env=self._env))
        return guest['domid'], guest['created_s'], self.host.guest_pids()

    @staticmethod
    def output(machine, *command):
        """Run a command on a machine; return what it printed."""
        return shell.output(_inside(machine, *command))

    def ping(self, interval_s):
        """Start a ping from client to server."""
        with processes.deferred():
            ping = pings.Ping(_inside(
                self.client, 'ping', '-n', '-i', interval_s, SERVER_IP))
            self._undo.callback(ping.kill)
        return ping

    def http(self):
        """Fetch the server's page; return its status, None if no answer."""
        done = subprocess.run(_inside(
            self.client, 'curl', '-s', '-o', '/dev/null', '-w',
            '%{http_code}', '--connect-timeout', _REFUSED_S, '--max-time',
            _PATIENCE_S, f'http://{SERVER_IP}/'), capture_output=True,
            text=True, stdin=subprocess.DEVNULL)
        return None if done.returncode else int(done.stdout)

    def interact(self):
        """Give the terminal a shell with the tools; its end is no error."""
        log.info('everything is up; "exit" removes it. Try:')
        print(_USAGE.format(guest=GUEST, ip=SERVER_IP,
                            client=self.client.namespace), flush=True)
        with processes.undisturbed():       # Ctrl-C is the shell's
            subprocess.run(['bash', '--norc'], env={
                **self._env, 'PS1': 'try# '}, cwd=self.host.folder)

    def leftovers(self):
        """Return what is still there after :func:`opened`."""
        names = (self.client.namespace, self.server.namespace)
        places = [f'/run/netns/{name}' for name in names]
        places += [f'/sys/class/net/{name}o' for name in names]
        found = [p for p in (*places, str(self.host.folder))
                 if os.path.exists(p)]
        return found + [f'process {p}' for p in self.host.guest_pids()]


_USAGE = '\n'.join((
    '  cosmos list',
    '  cosmos handlers {guest}',
    '  cosmos read {guest} fw.hits',
    "  cosmos write {guest} fw.config 'deny icmp, allow all'",
    '  vale-ctl ports',
    '  ip netns exec {client} ping -c 3 {ip}',
    '  ip netns exec {client} curl -sI http://{ip}/'))


def _inside(machine, *command):
    return ['ip', 'netns', 'exec', machine.namespace, *map(str, command)]


def _mac(segment):
    return f'02:00:00:09:{segment:02x}:01'


def configuration():
    """Return the template with the addresses that Neutron would give."""
    values = ', '.join(
        f'${side.upper()}_{name} {value}'
        for side, network, segment, _ in _SIDES
        for name, value in (('IP', f'{network}.1'), ('MAC', _mac(segment)),
                            ('NET', f'{network}.0/24'), ('MTU', '1500'),
                            ('IP6', '::'), ('NET6', '::/128')))
    return f'define({values});\n{csar.configuration(GUEST)}'


def guest_file():
    """Return the guest file: one interface in each segment."""
    vifs = ',\n        '.join(
        f"'bridge=vale0,port={GUEST}-{side},segment={segment},"
        f"mac={_mac(segment)},ip=0.0.0.0/0'"
        for side, _, segment, _ in _SIDES)
    return (f'name = "{GUEST}"\nmemory = 8\nconfig = "{GUEST}.click"\n'
            f'vif = [ {vifs} ]\nwrite = [ [\'fw.config\', \'{OPEN}\'] ]\n')

# SPDX-License-Identifier: Apache-2.0
"""A VNF in the program ``click``, with a host on each of its vifs.

::

    host [eth0] === veth === [0] click [1] === veth === [eth0] host

Every box is a network namespace. The vifs have the names 0, 1 and so on, so
the VNF's configuration runs unchanged.
"""

import contextlib
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

from clickos_lab import errors
from clickos_lab import shell
from clickos_lab.vnf import control
from clickos_lab.vnf import programs
from clickos_lab.vnf import rendering

#: How long a busy machine may take for anything; a test that passes never
#: waits for it.
_PATIENCE_S = 60
_ANSWER_S = 20
_SILENCE_S = 1
_RECEIVED = re.compile(r' (\d+) received')
_HTTP_SERVER = pathlib.Path(__file__).with_name('http_server.py')


class Bench:
    """One VNF under test; a context manager that removes everything.

    :param name: the VNF's folder
    """

    def __init__(self, name):
        self.scenario = rendering.scenario(name)
        self.name = name
        self._vdu = rendering.vdu(name)
        self.shared = getattr(self.scenario, 'SHARED_NETWORK', False)
        self.interfaces = [
            rendering.interface(cp, index, self.shared)
            for index, cp in enumerate(self._vdu.cps)]
        self._prefix = f'vnf{os.getpid()}'
        self._processes = []
        self.swaps = 0

    def __enter__(self):
        with contextlib.ExitStack() as undo:
            folder = undo.enter_context(tempfile.TemporaryDirectory())
            self.folder = pathlib.Path(folder)
            undo.callback(self._end_processes)
            self._add_namespaces(undo)
            self._start()
            undo.callback(self.control.close)
            self._undo = undo.pop_all()
        return self

    def __exit__(self, *_error):
        self._undo.close()

    def namespace(self, host):
        return f'{self._prefix}-{host}'

    def address(self, host):
        """Return the IPv4 address of a host, or of vif N as ``vifN``."""
        if host.startswith('vif'):
            return self.interfaces[int(host[3:])].ip
        index = [i.cp for i in self.interfaces].index(host)
        if self.shared:
            return f'10.9.1.{index + 9}'
        return f'10.9.{index + 1}.9'

    def _add_namespaces(self, undo):
        for name in ('vnf', *(i.cp for i in self.interfaces)):
            _ip('netns', 'add', self.namespace(name))
            undo.callback(_ip, 'netns', 'delete', self.namespace(name))
        for index, interface in enumerate(self.interfaces):
            self._connect(index, interface)

    def _connect(self, index, interface):
        vnf, host = self.namespace('vnf'), self.namespace(interface.cp)
        _ip('link', 'add', 'eth0', 'netns', host, 'address',
            f'02:00:00:09:{index + 1:02x}:09', 'type', 'veth',
            'peer', 'name', str(index), 'netns', vnf,
            'address', interface.mac)
        for place, device in ((vnf, str(index)), (host, 'eth0')):
            # no packet that the kernel sends of its own accord
            _ip('-n', place, 'link', 'set', device, 'addrgenmode', 'none')
            # a frame is as on a wire: whole checksums, at most the MTU
            shell.output(['ip', 'netns', 'exec', place, 'ethtool', '-K',
                          device, 'tx', 'off', 'rx', 'off', 'gro', 'off'])
            _ip('-n', place, 'link', 'set', device, 'up')
        _ip('-n', host, 'link', 'set', 'lo', 'up')
        _ip('-n', host, 'address', 'add',
            f'{self.address(interface.cp)}/24', 'dev', 'eth0')
        if not self.shared:
            _ip('-n', host, 'route', 'add', 'default', 'via', interface.ip)

    def _start(self):
        wanted = rendering.wanted(self.scenario)
        made = rendering.configuration(self._vdu, self.interfaces, wanted)
        file, listener = self.folder / 'vnf.click', self.folder / 'control'
        file.write_text(made.config)
        process = self.start('vnf', programs.path('click'), '-R', '-f', file,
                             '-u', listener)
        try:
            self.control = control.Control(listener)
        except errors.LabError:
            process.terminate()
            raise errors.LabError(process.communicate()[0])
        for handler, value in made.writes:
            self.control.write(handler, value)

    def command(self, host, *words):
        return ['ip', 'netns', 'exec', self.namespace(host),
                *map(str, words)]

    def run(self, host, *words, timeout_s=_PATIENCE_S):
        """Run a program on a host; return its output.

        :raises LabError: if it fails
        """
        return shell.output(self.command(host, *words), timeout_s=timeout_s)

    def fails(self, host, *words):
        """True if a program on a host ends with an error."""
        return self._done(host, *words).returncode != 0

    def printed(self, host, *words):
        """Return what a program on a host prints; it may fail."""
        done = self._done(host, *words)
        return done.stdout + done.stderr

    def _done(self, host, *words):
        return subprocess.run(
            self.command(host, *words), timeout=_PATIENCE_S, text=True,
            stdin=subprocess.DEVNULL, capture_output=True)

    def add_address(self, host, address):
        """Give a host one more address."""
        _ip('-n', self.namespace(host), 'address', 'add', address,
            'dev', 'eth0')

    def start(self, host, *words):
        """Start a program on a host; it ends with the bench."""
        process = subprocess.Popen(
            self.command(host, *words), stdin=subprocess.DEVNULL, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self._processes.append(process)
        return process

    def serve(self, host, port, *words, udp=False):
        """Start a server and wait until it listens on a port."""
        process = self.start(host, *words)
        listing = ('ss', '-lunH' if udp else '-ltnH', f'sport = :{port}')
        self.until(lambda: self.run(host, *listing),
                   f'{words[0]} does not listen on port {port}')
        return process

    def serve_http(self, host, port):
        """Serve this folder's list by HTTP, for IPv4 and IPv6."""
        return self.serve(host, port, sys.executable, _HTTP_SERVER, port)

    def until(self, condition, message):
        """Wait until a condition holds; LabError with a message if not."""
        deadline_s = time.monotonic() + _PATIENCE_S
        while not condition():
            if time.monotonic() > deadline_s:
                raise errors.LabError(message)
            time.sleep(0.05)

    def stop(self, process):
        """Stop a program; return what it printed."""
        process.send_signal(signal.SIGINT)
        return self.wait(process)

    def wait(self, process):
        """Wait for the end of a program; return what it printed."""
        return process.communicate(timeout=_PATIENCE_S)[0]

    def _end_processes(self):
        for process in self._processes:
            if process.poll() is None:
                process.terminate()
            process.communicate(timeout=_PATIENCE_S)

    def ping(self, host, target, count=5, *more):
        """Return how many of some pings are answered until one is not.

        Each has a process of its own: after its first answer ping waits
        only some milliseconds for the last one.
        """
        for number in range(count):
            if not self._ping(host, target, _ANSWER_S, *more):
                return number
        return count

    def silent(self, host, target, *more):
        """True if a ping gets no answer."""
        return not self._ping(host, target, _SILENCE_S, *more)

    def _ping(self, host, target, patience_s, *more):
        done = self._done(host, 'ping', '-n', '-q', '-c', 1, '-W',
                          patience_s, *more, target)
        found = _RECEIVED.search(done.stdout)
        if not found:
            raise errors.LabError(f'ping: {done.stdout}{done.stderr}')
        return int(found[1])

    def count(self, handler):
        """Return a read handler's value as a number."""
        return int(self.control.read(handler))

    def swap(self):
        """Replace the configuration by itself: state is to survive."""
        text = (self.folder / 'vnf.click').read_text()
        self.control.write('hotconfig', text)
        self.swaps += 1

    def capture(self, host, expression, count):
        """Start tcpdump on a host for some packets; return its process."""
        process = self.start(
            host, 'tcpdump', '-n', '-l', '-v', '-Z', 'root', '-i', 'eth0',
            '--immediate-mode', '-c', count, expression)
        for line in process.stdout:
            if 'listening on' in line:
                return process
        raise errors.LabError(f'tcpdump does not listen on {host}')


def _ip(*words):
    shell.output(['ip', *words])

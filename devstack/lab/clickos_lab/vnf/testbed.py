# SPDX-License-Identifier: Apache-2.0
"""A VNF in the program ``click``, with a host on each of its vifs.

::

    host [eth0] === veth === [0] click [1] === veth === [eth0] host

Every box is a network namespace. The vifs have the names 0, 1 and so on, so
the VNF's configuration runs unchanged.

The module :mod:`xen_bench` has a guest of Xen instead of the program,
and :mod:`cloud_bench` one that Tacker has deployed.
"""

import contextlib
import json
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
_RSYSLOG = '''
module(load="imudp")
input(type="imudp" port="514")
template(name="fields" type="string"
         string="%pri% %hostname% %app-name% %msgid% %msg%\\n")
*.* action(type="omfile" file="{file}" template="fields")
'''


class VnfTestbed:
    """One VNF under test; a context manager that removes everything.

    :param name: the VNF's folder
    """

    def __init__(self, name):
        self.scenario = rendering.scenario(name)
        self.name = name
        self.vdu = rendering.vdu(name)
        self.shared = getattr(self.scenario, 'SHARED_NETWORK', False)
        self.interfaces = [
            rendering.interface(self.vdu, index, self.shared)
            for index in range(len(self.vdu.cps))]
        self._prefix = f'vnf{os.getpid()}'
        self._processes = []
        self.swaps = 0

    def __enter__(self):
        with contextlib.ExitStack() as undo:
            folder = undo.enter_context(tempfile.TemporaryDirectory())
            self.folder = pathlib.Path(folder)
            undo.callback(self._end_processes)
            self._add_hosts(undo)
            self.control = self._start_vnf(undo)
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

    def _add_hosts(self, undo):
        for interface in self.interfaces:
            self._add_namespace(interface.cp, undo)
        self._connect(undo)
        for interface in self.interfaces:
            self._configure(interface)

    def _add_namespace(self, host, undo):
        ip('netns', 'add', self.namespace(host))
        undo.callback(ip, 'netns', 'delete', self.namespace(host))

    def _connect(self, undo):
        """Give each host its eth0, which leads to the VNF."""
        self._add_namespace('vnf', undo)
        vnf = self.namespace('vnf')
        for index, interface in enumerate(self.interfaces):
            host = self.namespace(interface.cp)
            ip('link', 'add', 'eth0', 'netns', host, 'address',
               host_mac(index), 'type', 'veth', 'peer', 'name', str(index),
               'netns', vnf, 'address', interface.mac)
            for place, device in ((vnf, str(index)), (host, 'eth0')):
                whole_frames(place, device)
            bring_up(vnf, str(index))

    def _configure(self, interface):
        """Bring a host's interfaces up, with an address and a route."""
        host = self.namespace(interface.cp)
        bring_up(host, 'eth0')
        ip('-n', host, 'link', 'set', 'lo', 'up')
        ip('-n', host, 'address', 'add',
           f'{self.address(interface.cp)}/24', 'dev', 'eth0')
        if not self.shared:
            ip('-n', host, 'route', 'add', 'default', 'via', interface.ip)

    def configuration(self):
        """Return the VNF's document.Configuration."""
        return rendering.configuration(self.vdu, self.interfaces,
                                       rendering.wanted(self.scenario))

    def _start_vnf(self, undo):
        """Start the VNF; return its handlers, which undo closes."""
        made = self.configuration()
        file, listener = self.folder / 'vnf.click', self.folder / 'control'
        file.write_text(made.config)
        process = self.start('vnf', programs.path('click'), '-R', '-f', file,
                             '-u', listener)
        try:
            handlers = control.Control(listener)
        except errors.LabError:
            process.terminate()
            raise errors.LabError(process.communicate()[0])
        undo.callback(handlers.close)
        for handler, value in made.writes:
            handlers.write(handler, value)
        return handlers

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

    def iperf3(self, host, *words):
        """Run iperf3's client on a host; return the end of its results.

        A server refuses as long as it ends the test before. With JSON the
        client's status does not tell that.
        """
        results = {}

        def measures():
            results.clear()
            results.update(json.loads(self.run(host, 'iperf3', '-J', *words)))
            return 'error' not in results
        self.until(measures, 'iperf3 has no results')
        return results['end']

    def add_address(self, host, address):
        """Give a host one more address."""
        ip('-n', self.namespace(host), 'address', 'add', address,
           'dev', 'eth0')

    def start(self, host, *words):
        """Start a program on a host; it ends with the testbed."""
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

    def serve_syslog(self, host):
        """Receive syslog by rsyslogd; return the file with the messages.

        A line has priority, host, application, kind and text.
        """
        file, made = self.folder / 'syslog', self.folder / 'rsyslog.conf'
        file.touch()
        made.write_text(_RSYSLOG.format(file=file))
        self.serve(host, 514, 'rsyslogd', '-n', '-f', made, '-i',
                   self.folder / 'rsyslogd.pid', udp=True)
        return file

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
        self._install()
        self.swaps += 1

    def _install(self):
        text = (self.folder / 'vnf.click').read_text()
        self.control.write('hotconfig', text)

    def capture(self, host, expression, count):
        """Start tcpdump on a host for some packets; return its process."""
        process = self.start(
            host, 'tcpdump', '-n', '-l', '-v', '-Z', 'root', '-i', 'eth0',
            '--immediate-mode', '-c', count, expression)
        for line in process.stdout:
            if 'listening on' in line:
                return process
        raise errors.LabError(f'tcpdump does not listen on {host}')


def host_mac(index):
    """Return the MAC address of the host at vif ``index``."""
    return f'02:00:00:09:{index + 1:02x}:09'


def bring_up(namespace, device):
    """Bring a device up that sends no packet of the kernel's own accord."""
    ip('-n', namespace, 'link', 'set', device, 'addrgenmode', 'none')
    ip('-n', namespace, 'link', 'set', device, 'up')


def whole_frames(namespace, device):
    """Let frames be as on a wire: whole checksums, at most the MTU."""
    shell.output(['ip', 'netns', 'exec', namespace, 'ethtool', '-K', device,
                  'tx', 'off', 'rx', 'off', 'gro', 'off'])


def ip(*words):
    """Run the program of this name."""
    shell.output(['ip', *words])

# SPDX-License-Identifier: Apache-2.0
"""oxenstored with simulated guests, and what talks to it."""

import ctypes
import mmap
import pathlib
import socket
import struct
import subprocess
import time

from clickos_lab import shell

_SOURCE = pathlib.Path(__file__).parent / 'fakexen.c'
_PAGE, _RING, _PORTS = 4096, 1024, 65536
#: Where the four indices lie, and the state of the connection.
_REQ_CONS, _REQ_PROD, _RSP_CONS, _RSP_PROD, _CONNECTION = (
    2048, 2052, 2056, 2060, 2068)
_PORT_DEATH, _PORT_DOM0 = 1, 2
_HEADER = struct.Struct('=IIII')
#: A scan of all rings would hide a request that was forgotten.
_CONFIG = """\
ring-scan-interval = -1
xenstored-kva = {folder}/dom0
xenstored-port = {folder}/port0
pid-file = {folder}/pid
xenstored-log-file = {folder}/log
persistent = false
"""
(DIRECTORY, READ, WATCH, START, END, INTRODUCE, RELEASE, WRITE, REMOVE,
 SET_PERMS, EVENT, ERROR, PART) = (
     1, 2, 4, 6, 7, 8, 9, 11, 13, 14, 15, 16, 22)
WAIT_S = 5


def build(packages, folder):
    """Build the library that takes the hypervisor's place."""
    library = folder / 'fakexen.so'
    shell.run(['gcc', '-O1', '-Wall', '-Werror', '-shared', '-fPIC',
               '-isystem', packages / 'usr/include', '-o', library, _SOURCE],
              folder / 'fakexen.log')
    return library


def joined(*strings):
    """Return strings as the store wants them, each with its end."""
    return b''.join(str(s).encode() + b'\0' for s in strings)


class Refused(Exception):
    """An error of the store, by its name."""


class _Stream:
    """Messages of a connection: answers, and events by themselves."""

    def __init__(self):
        self._data = b''
        self._number = 0
        self.events = []

    def request(self, kind, *strings, transaction=0, tail=b''):
        """Send a request; return the answer's bytes."""
        self._number += 1
        payload = joined(*strings) + tail
        self.send(_HEADER.pack(kind, self._number, transaction, len(payload))
                  + payload)
        while (message := self.receive())[1] != self._number:
            pass
        if message[0] == ERROR:
            raise Refused(message[2].rstrip(b'\0').decode())
        return message[2]

    def receive(self):
        """Return the next message; keep it if it is an event."""
        self._fill(_HEADER.size)
        kind, number, _, length = _HEADER.unpack_from(self._data)
        self._fill(_HEADER.size + length)
        payload = self._data[_HEADER.size:_HEADER.size + length]
        self._data = self._data[_HEADER.size + length:]
        if kind == EVENT:
            self.events.append(payload.split(b'\0')[0].decode())
        return kind, number, payload

    def _fill(self, length):
        deadline_s = time.monotonic() + WAIT_S
        while len(self._data) < length:
            self._data += self.read(deadline_s)

    def wait_for_event(self, path):
        """Wait for an event; take all that came."""
        while path not in self.events:
            self.receive()
        taken, self.events = self.events, []
        return taken

    def write(self, path, value, transaction=0):
        """Write a node."""
        self.request(WRITE, path, tail=value.encode(), transaction=transaction)

    def names(self, path):
        """Return the names in a folder, taken in parts."""
        whole, states = b'', set()
        while not whole or (whole != b'\0' and whole[-2:] != b'\0\0'):
            state, _, part = self.request(PART, path, len(whole)).partition(
                b'\0')
            states.add(state)
            whole += part
        if len(states) > 1:
            raise AssertionError(f'the list changed: {states}')
        return whole.decode().split('\0')[:-2]

    def own(self, path, domid):
        """Give a node to a domain."""
        self.request(SET_PERMS, path, f'n{domid}')


class Client(_Stream):
    """A client of the socket: dom0."""

    def __init__(self, path):
        super().__init__()
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(WAIT_S)
        self._socket.connect(str(path))

    def send(self, data):
        """Send bytes."""
        self._socket.sendall(data)

    def read(self, _deadline_s):
        """Return some bytes."""
        data = self._socket.recv(65536)
        if not data:
            raise EOFError('the store has closed the connection')
        return data

    def close(self):
        """End the connection."""
        self._socket.close()


class Guest(_Stream):
    """A guest with its page and its event channel."""

    def __init__(self, daemon, domid, port):
        super().__init__()
        self._daemon, self.domid, self.port = daemon, domid, port
        self.page_file = daemon.folder / f'dom{domid}'
        self.page_file.write_bytes(bytes(_PAGE))
        with open(self.page_file, 'r+b') as f:
            self._page = mmap.mmap(f.fileno(), _PAGE)

    def index(self, at):
        """Return an index of the ring."""
        return self._word(at).value

    def set_index(self, at, value):
        """Set an index, to whatever."""
        self._word(at).value = value & 0xffffffff

    def _word(self, at):
        """Return a word of the page; struct would write zeros first."""
        return ctypes.c_uint32.from_buffer(self._page, at)

    def notify(self):
        """Send an event to the store."""
        self._daemon.notify(self.port)

    def send(self, data):
        """Put bytes into the ring and tell the store."""
        deadline_s = time.monotonic() + WAIT_S
        while data:
            produced = self.index(_REQ_PROD)
            free = _RING - (produced - self.index(_REQ_CONS) & 0xffffffff)
            for byte in data[:free]:
                self._page[produced % _RING] = byte
                produced += 1
            self.set_index(_REQ_PROD, produced)
            self.notify()
            data = data[free:]
            check(deadline_s)

    def read(self, deadline_s):
        """Wait for bytes in the ring; take them."""
        consumed = self.index(_RSP_CONS)
        while not (ready := self.index(_RSP_PROD) - consumed & 0xffffffff):
            check(deadline_s)
        data = bytes(self._page[_RING + (consumed + i) % _RING]
                     for i in range(ready))
        self.set_index(_RSP_CONS, consumed + ready)
        self.notify()
        return data

    def reconnect(self):
        """Begin again, as a kernel does after another one."""
        self._data, self.events = b'', []
        self.set_index(_CONNECTION, 1)
        self.notify()
        deadline_s = time.monotonic() + WAIT_S
        while self.index(_CONNECTION):
            check(deadline_s)

    def ask_without_taking(self, kind, path, times):
        """Send requests; the answers stay in the ring."""
        payload = joined(path)
        for _ in range(times):
            self.send(_HEADER.pack(kind, 0, 0, len(payload)) + payload)

    def break_requests(self):
        """Claim more requests than the ring holds."""
        self.set_index(_REQ_PROD, self.index(_REQ_CONS) + 2 * _RING)
        self.notify()

    def break_answers(self):
        """Let the store write a part of an answer, then spoil its index."""
        before = self.index(_RSP_PROD)
        self.set_index(_RSP_CONS, before + 4 - _RING)
        self.send(_HEADER.pack(DIRECTORY, 1, 0, 2) + b'/\0')
        deadline_s = time.monotonic() + WAIT_S
        while self.index(_RSP_PROD) == before:
            check(deadline_s)
        self.set_index(_RSP_CONS, before + 2 * _RING)
        self.notify()


def check(deadline_s):
    if time.monotonic() > deadline_s:
        raise TimeoutError(f'the store did nothing for {WAIT_S} s')
    time.sleep(0)


class Daemon:
    """A running oxenstored."""

    def __init__(self, program, library, packages, folder):
        self.folder, self._packages = folder, packages
        self._libraries = {'LD_LIBRARY_PATH': str(
            packages / 'usr/lib/x86_64-linux-gnu')}
        (folder / 'dom0').write_bytes(bytes(_PAGE))
        (folder / 'port0').write_text(str(_PORT_DOM0))
        (folder / 'ports').write_bytes(bytes(_PORTS))
        config = folder / 'oxenstored.conf'
        config.write_text(_CONFIG.format(folder=folder))
        with open(folder / 'out', 'w') as out:
            # oxenstored makes a folder in /run, so it gets its own.
            self._process = subprocess.Popen(
                ['unshare', '--mount', 'sh', '-c',
                 'mount -t tmpfs none /run && exec env "LD_PRELOAD=$1" "$2" '
                 '--no-fork --no-access-log --config-file "$3"', 'sh',
                 library, program, config],
                env={'FAKEXEN': str(folder),
                     'PATH': '/usr/sbin:/usr/bin:/bin', **self._libraries},
                stdout=out, stderr=subprocess.STDOUT)
        self._events = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._wait_for_sockets()
        self._events.connect(str(folder / 'events'))
        self._last_port = 10

    def _wait_for_sockets(self):
        deadline_s = time.monotonic() + WAIT_S
        while not all((self.folder / name).exists()
                      for name in ('socket', 'events')):
            check(deadline_s)
            if self._process.poll() is not None:
                raise AssertionError((self.folder / 'out').read_text())

    def client(self):
        """Return a new client of the socket."""
        return Client(self.folder / 'socket')

    def program(self, *words):
        """Run Xen's own client, as dom0; return what it prints."""
        return subprocess.run(
            [self._packages / 'usr/bin/xenstore', *words], check=True,
            capture_output=True, text=True, timeout=WAIT_S, env={
                **self._libraries, 'XENSTORED_RUNDIR': str(self.folder)}
        ).stdout

    def notify(self, port):
        """Send an event."""
        self._events.send(struct.pack('=I', port))

    def introduce(self, client, domid, port=None):
        """Start a guest."""
        if port is None:
            self._last_port += 1
            port = self._last_port
        one = Guest(self, domid, port)
        client.request(INTRODUCE, domid, 1, port)
        return one

    def kill(self, *guests):
        """End guests, as the hypervisor tells it."""
        for one in guests:
            one.page_file.unlink()
        self.notify(_PORT_DEATH)

    def bound_ports(self):
        """Return how many channels are bound."""
        return (self.folder / 'ports').read_bytes().count(1)

    def resident_kib(self):
        """Return the memory of the process."""
        status = self._proc('status').read_text()
        return int(status.split('VmRSS:')[1].split()[0])

    def spent_ns(self):
        """Return for how long the process has run."""
        return int(self._proc('schedstat').read_text().split()[0])

    def _proc(self, name):
        return pathlib.Path('/proc', str(self._process.pid), name)

    def stop(self):
        """End it."""
        self._process.kill()
        self._process.wait()
        self._events.close()

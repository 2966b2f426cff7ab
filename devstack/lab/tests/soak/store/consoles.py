# SPDX-License-Identifier: Apache-2.0
"""xenconsoled with simulated consoles of guests."""

import contextlib
import ctypes
import mmap
import os
import pathlib
import socket
import struct
import subprocess
import time

from tests.soak.store import daemon

_PAGE = 4096
#: struct xencons_interface of xen/io/console.h
_IN, _IN_BYTES, _OUT, _OUT_BYTES = 0, 1024, 1024, 2048
_IN_CONS, _IN_PROD, _OUT_CONS, _OUT_PROD = 3072, 3076, 3080, 3084
_FIRST_PORT = 20000


class Console:
    """The console of a guest; dom0's end is a terminal."""

    def __init__(self, of, domid):
        self._of, self.domid = of, domid
        self.page_file = of.folder / f'console{domid}'
        self.page_file.write_bytes(bytes(_PAGE))
        with open(self.page_file, 'r+b') as f:
            self._page = mmap.mmap(f.fileno(), _PAGE)
        self._port = _FIRST_PORT + domid
        self._terminal = None

    @property
    def nodes(self):
        """The nodes that libxl writes for it."""
        return {'ring-ref': '1', 'port': str(self._port),
                'type': 'xenconsoled', 'limit': '1048576'}

    def _word(self, at):
        return ctypes.c_uint32.from_buffer(self._page, at)

    def notify(self):
        """Send an event to xenconsoled."""
        self._of.notify(self._port)

    def write(self, data):
        """Write as the guest does, and send an event for each piece."""
        deadline_s = time.monotonic() + daemon.WAIT_S
        while data:
            produced = self._word(_OUT_PROD).value
            free = _OUT_BYTES - (produced - self._word(_OUT_CONS).value)
            for byte in data[:free]:
                self._page[_OUT + produced % _OUT_BYTES] = byte
                produced += 1
            self._word(_OUT_PROD).value = produced
            self.notify()
            data = data[free:]
            daemon.check(deadline_s)

    def read(self, length, is_told=True):
        """Read as the guest does; send an event for what is taken."""
        got = b''
        deadline_s = time.monotonic() + daemon.WAIT_S
        while len(got) < length:
            consumed = self._word(_IN_CONS).value
            ready = self._word(_IN_PROD).value - consumed
            got += bytes(self._page[_IN + (consumed + i) % _IN_BYTES]
                         for i in range(ready))
            self._word(_IN_CONS).value = consumed + ready
            if ready and is_told:
                self.notify()
            daemon.check(deadline_s)
        return got

    def open_terminal(self, path):
        """Open dom0's end."""
        self._terminal = os.open(path, os.O_RDWR | os.O_NOCTTY)
        os.set_blocking(self._terminal, False)

    def typed(self, data):
        """Write to the terminal."""
        os.write(self._terminal, data)

    def shown(self, length):
        """Return what the terminal shows."""
        got = b''
        deadline_s = time.monotonic() + daemon.WAIT_S
        while len(got) < length:
            with contextlib.suppress(BlockingIOError):
                got += os.read(self._terminal, length - len(got))
            daemon.check(deadline_s)
        return got

    def is_closed(self):
        """Return whether xenconsoled has closed the terminal."""
        try:
            return not os.read(self._terminal, 1)
        except BlockingIOError:
            return False
        except OSError:
            return True

    def close(self):
        """Close dom0's end."""
        if self._terminal is not None:
            os.close(self._terminal)


class Daemon:
    """A running xenconsoled, next to a running oxenstored."""

    def __init__(self, program, library, packages, folder):
        self.folder = folder
        with open(folder / 'consoled', 'w') as out:
            self._process = subprocess.Popen(
                [program, '--interactive', '--log=guest',
                 f'--log-dir={folder}', f'--pid-file={folder}/consoled.pid'],
                env={'FAKEXEN': str(folder), 'FAKEXEN_CHANNELS': '1',
                     'XENSTORED_PATH': str(folder / 'socket'),
                     'LD_PRELOAD': str(library), 'LD_LIBRARY_PATH':
                         str(packages / 'usr/lib/x86_64-linux-gnu')},
                stdout=out, stderr=subprocess.STDOUT)
        self._events = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)

    def notify(self, port):
        """Send an event."""
        self._events.sendto(struct.pack('=I', port),
                            str(self.folder / f'channel{port}'))

    def spent_ns(self):
        """Return for how long the process has run."""
        tasks = pathlib.Path('/proc', str(self._process.pid), 'task')
        return sum(int((task / 'schedstat').read_text().split()[0])
                   for task in tasks.iterdir())

    def stop(self):
        """End it."""
        self._process.kill()
        self._process.wait()
        self._events.close()

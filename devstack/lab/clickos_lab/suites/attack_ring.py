# SPDX-License-Identifier: Apache-2.0
"""A guest that writes anything into its rings and descriptors.

``attack_ring.py SOCKET SEGMENT SEED SECONDS`` adds a process port to valed
and attacks it as its guest. It fails if valed does not answer afterwards, or
has read no frame.
"""

import array
import fcntl
import json
import mmap
import os
import random
import socket
import struct
import sys
import time

_PORT = {'switch': 'vale0', 'port': 'hostile'}
_MAC = '02:00:00:00:00:05'
#: The longest answer of valed.
_ANSWER = 65536
_ANSWER_S = 20
# docs/rings.md: the words of the guest and the switch, and the descriptors.
_LINES, _LINES_END, _SLOTS_AT, _TX, _BUFFER = 0x100, 0x300, 0x0c, 0x1000, 2048
_TX_HEAD = 0x100


def _call(path, verb, args):
    """Call a verb; return the answer and descriptors."""
    request = {'v': 1, 'id': 1, 'verb': verb, 'args': args}
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(_ANSWER_S)
        client.connect(path)
        client.sendall(json.dumps(request).encode() + b'\n')
        line, fds, _, _ = socket.recv_fds(client, _ANSWER, 8)
    answer = json.loads(line)
    if 'error' in answer:
        raise OSError(f'{verb}: {answer["error"]}')
    return answer['ok'], fds


class Guest:
    """A port's guest.

    :param fds: of memory, kick and wake, as valed sends them
    """

    def __init__(self, fds, seed):
        """Map the rings."""
        memory, self._kick, self._wake = fds
        self._fds = array.array('i', fds)
        self._chance = random.Random(seed)
        self._region = mmap.mmap(memory, os.fstat(memory).st_size)
        self._slots, = struct.unpack_from('<I', self._region, _SLOTS_AT)

    def attack(self):
        """Do one wrong thing, then kick."""
        self._chance.choice((
            self._lines, self._lines, self._descriptors, self._storm,
            self._storm, self._region_bytes, self._flags))()
        self._notify(self._chance.choice((1, 1, 2 ** 40, 2 ** 64 - 2)))

    def _notify(self, count):
        """Kick the switch; empty the eventfd first if it is full."""
        try:
            os.write(self._kick, struct.pack('<Q', count))
        except BlockingIOError:
            os.read(self._kick, 8)
            os.write(self._kick, struct.pack('<Q', 1))

    def close(self):
        """Close all: valed's next wake finds no reader."""
        for fd in self._fds:
            os.close(fd)

    def _lines(self):
        """Write words that are no indices, also those of the switch."""
        for _ in range(self._chance.randrange(1, 20)):
            at = self._chance.randrange(_LINES, _LINES_END, 4)
            word = self._chance.choice(
                (0, 1, self._slots - 1, self._slots, 2 ** 31, 2 ** 32 - 1,
                 self._chance.randrange(2 * self._slots)))
            struct.pack_into('<I', self._region, at, word)

    def _descriptors(self):
        """Write descriptors of both rings that point anywhere."""
        for slot in range(2 * self._slots):
            struct.pack_into('<Q', self._region, _TX + 8 * slot,
                             self._chance.getrandbits(64))

    def _storm(self):
        """Send up to a ring of frames, whose bytes change meanwhile."""
        buffers = _TX + 2 * max(4096, self._slots * 8)
        for slot in range(self._slots):
            length = self._chance.randrange(_BUFFER)
            struct.pack_into('<Q', self._region, _TX + 8 * slot,
                             buffers + slot * _BUFFER | length << 32)
        struct.pack_into('<I', self._region, _TX_HEAD,
                         self._chance.randrange(self._slots))
        self._notify(1)
        for slot in range(self._slots):
            at = buffers + slot * _BUFFER
            self._region[at:at + 64] = self._chance.randbytes(64)

    def _region_bytes(self):
        """Write noise anywhere, also into the header."""
        size = self._chance.choice((8, 64, 4096))
        at = self._chance.randrange(len(self._region) - size)
        self._region[at:at + size] = self._chance.randbytes(size)

    def _flags(self):
        """Change the flags of the shared descriptors, or fill the pipe."""
        fd = self._chance.choice((self._kick, self._wake))
        fcntl.fcntl(fd, fcntl.F_SETFL, self._chance.choice(
            (os.O_NONBLOCK, os.O_NONBLOCK | os.O_ASYNC)))


def main(path, segment, seed, seconds):
    """Attack for some seconds; valed must answer afterwards."""
    add = {'kind': 'process', 'segment': int(segment), 'mac': _MAC,
           'allowed': [], 'slots': 256, **_PORT}
    _, fds = _call(path, 'port-add', add)
    guest = Guest(fds, int(seed))
    try:
        until_s = time.monotonic() + float(seconds)
        while time.monotonic() < until_s:
            guest.attack()
        guest.close()
        answer, _ = _call(path, 'port-list', {'switch': _PORT['switch']})
    finally:
        _call(path, 'port-remove', _PORT)
    counters, = (port['counters'] for port in answer['ports']
                 if port['port'] == _PORT['port'])
    if not (counters['rx_packets'] and counters['dropped_malformed']):
        raise OSError(f'valed took no frame of the guest: {counters}')
    print(counters)


if __name__ == '__main__':
    main(*sys.argv[1:])

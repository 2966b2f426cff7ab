# SPDX-License-Identifier: Apache-2.0
"""Sends frames that a port with port security must not get through.

Run in a namespace: ``attack_frames.py SEED VICTIM_MAC``. The standard
library only: it runs as any program of a hostile guest would.
"""

import random
import socket
import struct
import sys

_COUNT = 20000
_OWN = bytes.fromhex('0200000a0001')
_GROUPS = [b'\xff' * 6, bytes.fromhex('0180c2000000'),
           bytes.fromhex('0180c200000e'), bytes.fromhex('333300000001')]
_TYPES = [0x0800, 0x0806, 0x86dd, 0x8100, 0x88a8, 0x8808, 0x8847, 0x8864,
          0x88cc, 0x0026, 0x9100, 0x8035]
_SNAP = b'\xaa\xaa\x03\x00\x00\x00'


def frames(chance, victim):
    """Yield frames: headers that make sense, with random faults."""
    while True:
        source = _OWN if chance.random() < .7 else chance.randbytes(6)
        target = chance.choice([victim, *_GROUPS])
        body = chance.choice((_arp, _ipv4, _ipv6, _noise))(chance)
        kind = struct.pack('!H', chance.choice(_TYPES))
        if chance.random() < .2:
            kind = struct.pack('!H', len(body) + 8) + _SNAP + kind
        if chance.random() < .2:
            kind = b'\x81\x00' + chance.randbytes(2) + kind
        yield (target + source + kind + body)[:1514]


def _arp(chance):
    return (b'\0\1\x08\0\6\4\0' + chance.choice((b'\1', b'\2')) + _OWN
            + b'\x0a\x63\1' + chance.randbytes(1) + chance.randbytes(10))


def _ipv4(chance):
    head = bytearray(b'\x45\0\0\x40\0\1' + chance.choice((b'\0\0', b'\x20\0'))
                     + b'\x40' + chance.choice((b'\x11', b'\1', b'\6')))
    head += b'\0\0\x0a\x63\1' + chance.randbytes(1) + b'\xff' * 4
    head += b'\0\x43\0\x44' + chance.randbytes(40)
    for _ in range(chance.randrange(3)):
        head[chance.randrange(len(head))] = chance.randrange(256)
    return bytes(head)


def _ipv6(chance):
    chain = chance.choice((b'\x3a', b'\x2c', b'\0', b'\x3c', b'\x33'))
    source = b'\xfe\x80' + chance.randbytes(14)
    group = b'\xff\2' + b'\0' * 13 + b'\1'
    advertisement = b'\x3a\0\0\0\0\0\0\1\x86\0' + chance.randbytes(40)
    return (b'\x60\0\0\0\0\x38' + chain + b'\xff' + source + group
            + advertisement)


def _noise(chance):
    return chance.randbytes(chance.randrange(1500))


def main(seed, victim):
    """Send one seed's frames."""
    chance = random.Random(int(seed))  # nosec B311
    out = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    out.bind(('eth0', 0))
    made = frames(chance, bytes.fromhex(victim.replace(':', '')))
    for _ in range(_COUNT):
        try:
            out.send(next(made))
        except OSError:
            # The queue is full, or the frame too short for the kernel.
            continue


if __name__ == '__main__':
    main(*sys.argv[1:])

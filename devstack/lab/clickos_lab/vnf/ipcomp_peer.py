# SPDX-License-Identifier: Apache-2.0
"""The other end of a compressor: zlib compresses for a TUN device.

``ipcomp_peer.py ADDRESS/PREFIX`` makes the device ``packed``. Packets that
the kernel sends there leave by eth0, compressed with DEFLATE (RFC 3173).
Packets of IP protocol 108 that reach eth0 arrive at the device, whole.
"""

import fcntl
import os
import select
import socket
import struct
import subprocess
import sys
import zlib

_TUNSETIFF = 0x400454ca
_IFF_TUN, _IFF_NO_PI = 1, 0x1000
_IPCOMP = 108
_DEFLATE = 2
_HEADER = struct.Struct('!BBH')
_RAW = -15


def main(address):
    tun, wire = _device('packed', address), _wire()
    while True:
        for ready in select.select([tun, wire], [], [])[0]:
            if ready is wire:
                os.write(tun, _whole(wire.recv(65535)))
            else:
                _send(wire, os.read(tun, 65535))


def _device(name, address):
    tun = os.open('/dev/net/tun', os.O_RDWR)
    fcntl.ioctl(tun, _TUNSETIFF, struct.pack(
        '16sH22x', name.encode(), _IFF_TUN | _IFF_NO_PI))
    for words in (('address', 'add', address, 'dev', name),
                  ('link', 'set', name, 'up')):
        subprocess.run(['ip', *words], check=True)
    return tun


def _wire():
    wire = socket.socket(socket.AF_INET, socket.SOCK_RAW, _IPCOMP)
    wire.setsockopt(socket.IPPROTO_IP, socket.IP_HDRINCL, 1)
    wire.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b'eth0\0')
    return wire


def _send(wire, packet):
    if packet[0] >> 4 == 4:
        target = socket.inet_ntoa(packet[16:20])
        wire.sendto(_packed(packet), (target, 0))


def _packed(packet):
    """Compress the payload, however little it gains."""
    stream = zlib.compressobj(wbits=_RAW)
    payload = stream.compress(packet[20:]) + stream.flush()
    return _with(packet, _IPCOMP, _HEADER.pack(packet[9], 0, _DEFLATE) +
                 payload)


def _whole(packet):
    protocol, _flags, algorithm = _HEADER.unpack_from(packet, 20)
    if algorithm != _DEFLATE:
        sys.exit(f'ipcomp_peer: algorithm {algorithm} is not DEFLATE')
    return _with(packet, protocol, zlib.decompress(packet[24:], wbits=_RAW))


def _with(packet, protocol, payload):
    """Return a packet of the same header with another payload."""
    head = bytearray(packet[:20])
    head[2:4] = struct.pack('!H', 20 + len(payload))
    head[9:12] = bytes((protocol, 0, 0))
    total = sum(struct.unpack('!10H', head))
    while total > 0xffff:
        total = (total & 0xffff) + (total >> 16)
    head[10:12] = struct.pack('!H', 0xffff - total)
    return bytes(head) + payload


if __name__ == '__main__':
    main(sys.argv[1])

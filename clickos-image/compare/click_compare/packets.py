# SPDX-License-Identifier: Apache-2.0
"""Random frames, some of them damaged, and the file they are written to."""
import collections
import struct

from click_compare.checksums import with_checksum
from click_compare import packets_ip6

ADDRESSES = ('10.0.0.1', '10.0.0.2', '10.1.2.3', '192.168.1.9', '18.26.4.9',
             '255.255.255.255', '0.0.0.0', '224.0.0.5', '127.0.0.1')
HOSTS = (b'\x02\0\0\0\0\x01', b'\xff' * 6, b'\x01\0\x5e\0\0\x05',
         b'\x02\0\0\0\0\x02', b'\x02\0\0\0\0\x03')
PORTS = (20, 22, 53, 80, 443, 1024, 5000, 65535)
Ends = collections.namedtuple('Ends', 'addresses hosts ports')
ENDS = Ends(ADDRESSES, HOSTS, PORTS)
_UDP, _TCP, _ICMP = 17, 6, 1
_OPTIONS = (b'\x01\x01\x01\x00', b'\x07\x07\x04\x01\x02\x03\x04\x00',
            b'\x94\x04\x00\x00', bytes(8), b'\x83\x07\x04\x0a\x00\x00\x01\x00',
            b'\x44\x08\x05\x00\x00\x00\x00\x00', b'\x07\x03\x04\x01',
            b'\x07\x00\x01\x01', b'\x89\x07\x04\x0a\x00\x00\x02\x01')


def packed(address):
    """Return an address as bytes."""
    return bytes(map(int, address.split('.')))


def frame(rng, ends=ENDS):
    """Return a frame: mostly IP, with anything wrong now and then."""
    kind, packet = rng.choice(_KINDS)(rng, ends)
    if rng.random() < .06:
        kind = rng.choice((0x0806, 0x86dd, 0x8100, 0x8863, 40))
    return (rng.choice(ends.hosts) + rng.choice(ends.hosts)
            + struct.pack('>H', kind) + _damaged(rng, packet))


def write_pcap(path, frames, interval_us=1000001):
    """Write frames, some time after each other."""
    with open(path, 'wb') as file:
        file.write(struct.pack('<IHHIIII', 0xa1b2c3d4, 2, 4, 0, 0, 65535, 1))
        for number, data in enumerate(frames):
            at = divmod(100000000 + number * interval_us, 1000000)
            file.write(struct.pack('<IIII', *at, len(data), len(data))
                       + data)


def _bytes(rng, most):
    return rng.randbytes(rng.randint(0, most))


def _arp(rng, ends):
    pair = [rng.choice(ends.hosts) + packed(rng.choice(ends.addresses))
            for _ in range(2)]
    return 0x0806, struct.pack('>HHBBH', 1, 0x800, 6, 4,
                               rng.choice([1, 1, 2, 3])) + b''.join(pair)


def _ip(rng, ends):
    return 0x0800, _ip_packet(rng, ends)


def _ip6(rng, ends):
    return 0x86dd, packets_ip6.packet(rng, ends.ports)


def _vlan(rng, ends):
    kind, packet = rng.choice((_ip, _ip, _arp, _ip6))(rng, ends)
    tag = struct.pack('>HH', rng.choice((0, 5, 0x2005, 0xffff)), kind)
    return 0x8100, tag + packet


_KINDS = (_ip,) * 16 + (_arp, _ip6, _ip6, _vlan)


def _udp(rng, ends, pseudo):
    text = _bytes(rng, 30)
    body = struct.pack('>HHHH', rng.choice(ends.ports),
                       rng.choice(ends.ports), 8 + len(text), 0) + text
    if rng.random() < .2:
        return body
    body = with_checksum(body, 6, pseudo + struct.pack('>BBH', 0, _UDP,
                                                       len(body)))
    return body if body[6:8] != b'\0\0' else body[:6] + b'\xff\xff' + text


def _tcp_options(rng):
    return rng.choice((b'', b'', b'\x02\x04\x05\xb4', b'\x01\x01\x04\x02',
                       b'\x05\x0a' + bytes(range(8)) + b'\x01\x00',
                       b'\x08\x0a' + bytes(8) + b'\x01\x01', b'\x02\x00\0\0',
                       b'\x03\x03\x07\x00', b'\x02\x09\x01\x01'))


def _tcp(rng, ends, pseudo):
    options = _tcp_options(rng)
    flags = rng.choice([2, 2, 18, 16, 16, 24, 17, 4, 0, 0x29])
    body = struct.pack('>HHIIBBHHH', rng.choice(ends.ports),
                       rng.choice(ends.ports), rng.getrandbits(32),
                       rng.getrandbits(32), 0x50 + len(options) * 4, flags,
                       rng.getrandbits(16), 0,
                       rng.choice((0, 0, 3))) + options + _bytes(rng, 30)
    return with_checksum(body, 16, pseudo + struct.pack('>BBH', 0, _TCP,
                                                        len(body)))


def _icmp(rng, ends, _pseudo):
    kind = rng.choice([0, 8, 8, 3, 3, 11, 13, 5, 12, 4])
    body = struct.pack('>BBHHH', kind, rng.choice([0, 0, 1, 3]), 0,
                       rng.getrandbits(16), rng.randrange(10))
    if kind in (3, 11, 12, 5, 4) and rng.random() < .7:
        body += _ip_packet(rng, ends, quoted=True)[:28]
    else:
        body += rng.randbytes(rng.choice([0, 4, 28, 40]))
    return with_checksum(body, 2)


def _other(rng, _ends, _pseudo):
    return _bytes(rng, 40)


def _ip_packet(rng, ends, quoted=False):
    pair = b''.join(packed(rng.choice(ends.addresses)) for _ in range(2))
    protocol, make = rng.choice(
        [(_UDP, _udp)] * 7 + [(_TCP, _tcp)] * 7
        + [(_ICMP, _icmp)] * (0 if quoted else 3)
        + [(rng.choice([47, 50, 89, 17, 6, 1, 99]), _other)] * 2)
    body = make(rng, ends, pair)
    options = rng.choice(_OPTIONS) if rng.random() < .15 else b''
    words = 5 + len(options) // 4
    fragment = rng.choice([0] * 12 + [0x4000] * 4
                          + [0x2000, 1, 3, 10, 0x2001, 0x2005, 0x1000])
    header = struct.pack('>BBHHHBBH', 0x40 | words,
                         rng.choice([0, 0, 0x10, 0xb8, 3, 1]),
                         _said(rng, words * 4 + len(body)),
                         rng.choice((7, rng.getrandbits(16))), fragment,
                         rng.choice([64, 64, 1, 2, 0, 255]), protocol, 0)
    return with_checksum(header + pair + options, 10) + body


def _said(rng, length):
    """Return a length, or a lie about it."""
    if rng.random() < .95:
        return length
    return rng.choice((0, 19, 20, 21, length - 1, length + 1, 65535))


def _damaged(rng, packet):
    if packet and rng.random() < .06:
        at = rng.randrange(len(packet))
        changed = packet[at] ^ 1 << rng.randrange(8)
        packet = packet[:at] + bytes([changed]) + packet[at + 1:]
    if rng.random() < .04:
        packet = packet[:rng.randint(0, len(packet))]
    if rng.random() < .06:
        packet += rng.randbytes(rng.randint(1, 10))
    return packet

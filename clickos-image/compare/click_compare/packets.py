# SPDX-License-Identifier: Apache-2.0
"""Random frames, some of them damaged, and the file they are written to."""
import struct

ADDRESSES = ('10.0.0.1', '10.0.0.2', '10.1.2.3', '192.168.1.9', '18.26.4.9',
             '255.255.255.255', '0.0.0.0', '224.0.0.5', '127.0.0.1')
HOSTS = (b'\x02\0\0\0\0\x01', b'\xff' * 6, b'\x01\0\x5e\0\0\x05',
         b'\x02\0\0\0\0\x02', b'\x02\0\0\0\0\x03')
_UDP, _TCP, _ICMP = 17, 6, 1
_OPTIONS = (b'\x01\x01\x01\x00', b'\x07\x07\x04\x01\x02\x03\x04\x00',
            b'\x94\x04\x00\x00', bytes(8), b'\x83\x07\x04\x0a\x00\x00\x01\x00')


def checksum(data):
    """Return the Internet checksum of bytes."""
    data += b'\0' * (len(data) % 2)
    total = sum(struct.unpack(f'>{len(data) // 2}H', data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return 0xffff ^ total


def packed(address):
    """Return an address as bytes."""
    return bytes(map(int, address.split('.')))


def frame(rng):
    """Return a frame: mostly IP, with anything wrong now and then."""
    packet = _damaged(rng, _ip(rng))
    kind = rng.choice([0x0800] * 14 + [0x0806, 0x86dd, 0x8100])
    if rng.random() < .05:
        packet, kind = _arp(rng), 0x0806
    return (rng.choice(HOSTS) + rng.choice(HOSTS[-2:])
            + struct.pack('>H', kind) + packet)


def write_pcap(path, frames):
    """Write frames, 1.000001 s after each other."""
    with open(path, 'wb') as file:
        file.write(struct.pack('<IHHIIII', 0xa1b2c3d4, 2, 4, 0, 0, 65535, 1))
        for number, data in enumerate(frames):
            file.write(struct.pack('<IIII', 100 + number, number, len(data),
                                   len(data)) + data)


def _bytes(rng, most):
    return rng.randbytes(rng.randint(0, most))


def _arp(rng):
    ends = [rng.choice(HOSTS) + packed(rng.choice(ADDRESSES))
            for _ in range(2)]
    return (struct.pack('>HHBBH', 1, 0x800, 6, 4, rng.choice([1, 1, 2, 3]))
            + b''.join(ends))


def _udp(rng, pseudo):
    text = _bytes(rng, 30)
    body = struct.pack('>HHHH', rng.choice([53, 80, 1024, 5000]),
                       rng.choice([53, 80, 1024, 65535]), 8 + len(text), 0)
    if rng.random() < .8:
        length = struct.pack('>H', 8 + len(text))
        total = checksum(pseudo + b'\0\x11' + length + body + text)
        body = body[:6] + struct.pack('>H', total or 0xffff)
    return body + text


def _tcp(rng, pseudo):
    flags = rng.choice([2, 16, 18, 24, 17, 4, 0])
    body = struct.pack('>HHIIBBHHH', rng.choice([20, 80, 1024]),
                       rng.choice([22, 80, 443]), rng.getrandbits(32),
                       rng.getrandbits(32), 0x50, flags,
                       rng.getrandbits(16), 0, 0) + _bytes(rng, 30)
    length = struct.pack('>H', len(body))
    total = checksum(pseudo + b'\0\x06' + length + body)
    return body[:16] + struct.pack('>H', total) + body[18:]


def _icmp(rng, _pseudo):
    body = struct.pack('>BBHHH', rng.choice([0, 8, 8, 3, 11, 13, 5]),
                       rng.choice([0, 0, 1, 3]), 0, rng.getrandbits(16),
                       rng.randrange(10)) + rng.randbytes(
                           rng.choice([0, 4, 28, 40]))
    return body[:2] + struct.pack('>H', checksum(body)) + body[4:]


def _other(rng, _pseudo):
    return _bytes(rng, 40)


def _ip(rng):
    ends = packed(rng.choice(ADDRESSES)) + packed(rng.choice(ADDRESSES))
    protocol, make = rng.choice(
        [(_UDP, _udp)] * 7 + [(_TCP, _tcp)] * 7 + [(_ICMP, _icmp)] * 3
        + [(rng.choice([47, 50, 89, 17, 6, 1, 99]), _other)] * 2)
    body = make(rng, ends)
    options = rng.choice(_OPTIONS) if rng.random() < .1 else b''
    words = 5 + len(options) // 4
    fragment = rng.choice([0] * 12 + [0x4000] * 4 + [0x2000, 10, 0x2005])
    header = struct.pack('>BBHHHBBH', 0x40 | words,
                         rng.choice([0, 0, 0x10, 0xb8, 3, 1]),
                         words * 4 + len(body), rng.getrandbits(16), fragment,
                         rng.choice([64, 1, 2, 0, 255]), protocol, 0)
    header += ends + options
    return (header[:10] + struct.pack('>H', checksum(header)) + header[12:]
            + body)


def _damaged(rng, packet):
    if rng.random() < .06:
        at = rng.randrange(len(packet))
        changed = packet[at] ^ 1 << rng.randrange(8)
        packet = packet[:at] + bytes([changed]) + packet[at + 1:]
    if rng.random() < .04:
        packet = packet[:rng.randint(0, len(packet))]
    if rng.random() < .04:
        packet += rng.randbytes(rng.randint(1, 10))
    return packet

# SPDX-License-Identifier: Apache-2.0
"""The traces: pcap files, the same ones every time."""

import ipaddress
import random
import struct

SEED = 20261120
DESTINATION_MAC = bytes.fromhex('0000c04f71ef')
SOURCE_MAC = bytes.fromhex('000000000001')
UDP = 17
PORT = 4969
SERVICES = (53, 80, 443, 5060)
CLIENTS = 0x0a000000
SERVERS = 0x02000000


def address(text):
    """Return an IPv4 address as a number."""
    return int(ipaddress.IPv4Address(text))


def checksum(data):
    """Return the Internet checksum of an even number of bytes."""
    total = sum(struct.unpack('>%dH' % (len(data) // 2), data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


def ip_header(source, destination, protocol, payload_bytes):
    """Return an IPv4 header without options, checksum included."""
    header = bytearray(struct.pack(
        '>BBHHHBBHII', 0x45, 0, 20 + payload_bytes, 0, 0, 64, protocol, 0,
        source, destination))
    struct.pack_into('>H', header, 10, checksum(header))
    return bytes(header)


def udp_packet(source, destination, source_port, port, payload_bytes=22):
    """Return an IPv4 packet with UDP in it."""
    length = 8 + payload_bytes
    udp = struct.pack('>HHHH', source_port, port, length, 0)
    payload = bytes((i * 7 + 3) & 0xff for i in range(payload_bytes))
    return ip_header(source, destination, UDP, length) + udp + payload


def ethernet(packet, source=SOURCE_MAC, destination=DESTINATION_MAC):
    """Return a frame with an IPv4 packet in it."""
    return destination + source + b'\x08\x00' + packet


def first_flow(payload_bytes=22, **macs):
    """Return a frame of the flow every trace of a single flow has."""
    packet = udp_packet(address('1.0.0.1'), address('2.0.0.2'), PORT, PORT,
                        payload_bytes)
    return ethernet(packet, **macs)


def flow(number):
    """Return a frame of one of up to 2**20 different flows."""
    return ethernet(udp_packet(
        CLIENTS + number % 65536 + 1,
        SERVERS + (number * 2654435761 & 0xffff) + 1,
        1024 + (number >> 16) * 7 + (number & 0xff),
        SERVICES[number & 3]))


def flows(count):
    """Return one frame of each flow, in no order."""
    frames = [flow(number) for number in range(count)]
    random.Random(SEED).shuffle(frames)
    return frames


def routes(count=1000):
    """Return different prefixes of 16 to 24 bits, as (address, length)."""
    numbers = random.Random(7)
    found = {}
    while len(found) < count:
        length = numbers.choice((16, 20, 22, 24, 24, 24, 24, 24))
        number = numbers.randrange(20, 200) << 24 | numbers.getrandbits(24)
        network = number >> (32 - length) << (32 - length)
        found[network, length] = None
    return list(found)


def routed(count=65536):
    """Return frames to random hosts of the routes."""
    numbers, prefixes = random.Random(8), routes()
    for number in range(count):
        network, length = numbers.choice(prefixes)
        host = network | numbers.getrandbits(32 - length)
        yield ethernet(udp_packet(address('1.0.0.1'), host,
                                  1000 + number % 5000, PORT))


def between_hosts(count=1024, answers=False):
    """Return a frame of each pair of stations, or its answer."""
    for number in range(count):
        pair = (struct.pack('>HI', 0x0200, number + 1),
                struct.pack('>HI', 0x0200, 0x10000 + number))
        source, destination = reversed(pair) if answers else pair
        yield first_flow(source=source, destination=destination)


def sessions(count=1024):
    """Return a frame of each PPPoE session."""
    for number in range(count):
        packet = udp_packet(0x64400000 + number, address('2.0.0.2'),
                            1000 + number, 53)
        pppoe = struct.pack('>BBHHH', 0x11, 0, number + 1, len(packet) + 2,
                            0x21)
        yield DESTINATION_MAC + SOURCE_MAC + b'\x88\x64' + pppoe + packet


def imix(count=12 * 128):
    """Return frames of 64, 570 and 1518 bytes, 7 to 4 to 1."""
    payloads = [22] * 7 + [528] * 4 + [1472]
    for number in range(count):
        yield first_flow(payloads[number * 5 % 12])


def anywhere(count=65536):
    """Return frames to random hosts of the whole address space."""
    numbers = random.Random(9)
    for number in range(count):
        yield ethernet(udp_packet(
            numbers.randrange(11 << 24, 200 << 24),
            numbers.randrange(1 << 24, 224 << 24),
            1000 + number % 5000, numbers.randrange(65536)))


def anywhere6(count=65536):
    """Return IPv6 frames to random hosts of routes as in a BGP table."""
    numbers = random.Random(10)
    for network, length in prefixes(count, BGP6_LENGTHS, 128, 61):
        host = network | numbers.getrandbits(128 - length)
        udp = struct.pack('>HHHH', PORT, PORT, 30, 0) + bytes(22)
        yield (DESTINATION_MAC + SOURCE_MAC + b'\x86\xdd' + struct.pack(
            '>IHBB', 6 << 28, len(udp), UDP, 64) +
            ipaddress.IPv6Address('2001:db8::1').packed +
            host.to_bytes(16, 'big') + udp)


#: How often each length of prefix occurs, as in a full BGP table.
BGP_LENGTHS = ((8, 1), (16, 6), (18, 2), (19, 4), (20, 6), (21, 6),
               (22, 12), (23, 10), (24, 53))
BGP6_LENGTHS = ((29, 4), (32, 14), (36, 4), (40, 8), (44, 8), (46, 2),
                (48, 60))


def prefixes(count, lengths, bits, seed):
    """Return different prefixes as (network, length)."""
    numbers = random.Random(seed)
    choices, weights = zip(*lengths)
    found = {}
    while len(found) < count:
        length = numbers.choices(choices, weights)[0]
        number = (1 << 125 | numbers.getrandbits(125) if bits == 128
                  else numbers.randrange(1 << 24, 224 << 24))
        found[number >> (bits - length) << (bits - length), length] = None
    return list(found)


TRACES = {
    'f1': lambda: [first_flow()] * 1024,
    'f1_1500': lambda: [first_flow(1458)] * 1024,
    'f10k': lambda: flows(10_000),
    'f1m': lambda: flows(1 << 20),
    'dst1k': routed,
    'mac1k': between_hosts,
    'mac1k_rev': lambda: between_hosts(answers=True),
    'pppoe1k': sessions,
    'imix': imix,
    'dstany': anywhere,
    'dst6': anywhere6,
}


def write(path, frames):
    """Write a pcap file, all at once or not at all."""
    partial = path.with_suffix('.partial')
    with open(partial, 'wb') as trace:
        trace.write(struct.pack('<IHHiIII', 0xa1b2c3d4, 2, 4, 0, 0, 65535, 1))
        for number, frame in enumerate(frames):
            seconds, microseconds = divmod(number, 1_000_000)
            trace.write(struct.pack('<IIII', seconds, microseconds,
                                    len(frame), len(frame)))
            trace.write(frame)
    partial.rename(path)


def generate(folder):
    """Write the traces that are not there yet."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, frames in TRACES.items():
        path = folder / (name + '.pcap')
        if not path.exists():
            write(path, frames())

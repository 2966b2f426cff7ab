# SPDX-License-Identifier: Apache-2.0
"""Random IPv6 packets."""
import ipaddress
import struct

from click_compare.checksums import with_checksum

_ADDRESSES = tuple(ipaddress.ip_address(text).packed for text in (
    '2001:db8::1', '2001:db8::2', 'fe80::1', 'ff02::1', '::1', '::',
    '64:ff9b::a00:1', '::ffff:10.0.0.1', '3ffe::9'))
# errors are sent to these only
_SENDERS = _ADDRESSES[:3] + _ADDRESSES[-1:]
_UDP, _TCP, _ICMP, _FRAGMENT, _NONE = 17, 6, 58, 44, 59


def packet(rng, ports):
    """Return an IPv6 packet."""
    pair = rng.choice(_SENDERS) + rng.choice(_ADDRESSES)
    protocol, body = _body(rng, ports, pair)
    length = len(body) if rng.random() < .95 else rng.choice((0, 1, 65535))
    return struct.pack('>IHBB', 0x60000000 | rng.choice((0, 9 << 20, 77)),
                       length, protocol, rng.choice((64, 64, 1, 0, 255))
                       ) + pair + body


def _body(rng, ports, pair):
    text = rng.randbytes(rng.randint(0, 60))
    kind = rng.choice((_UDP, _UDP, _TCP, _ICMP, _FRAGMENT, _NONE))
    if kind == _UDP:
        body = struct.pack('>HHHH', *rng.choices(ports, k=2), 8 + len(text),
                           0) + text
        return kind, _summed(body, 6, pair, kind)
    if kind == _TCP:
        body = struct.pack('>HHIIBBHHH', *rng.choices(ports, k=2), 1, 2,
                           0x50, rng.choice((2, 16, 18)), 99, 0, 0) + text
        return kind, _summed(body, 16, pair, kind)
    if kind == _ICMP:
        body = struct.pack('>BBHHH', rng.choice((128, 129, 135)), 0, 0,
                           7, 1) + text
        return kind, _summed(body, 2, pair, kind)
    if kind == _FRAGMENT:
        return kind, struct.pack('>BBHI', _UDP, 0, rng.choice((1, 0, 80)),
                                 5) + text
    return kind, text


def _summed(body, at, pair, protocol):
    return with_checksum(body, at,
                         pair + struct.pack('>II', len(body), protocol))

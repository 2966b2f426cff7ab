# SPDX-License-Identifier: Apache-2.0
"""A second judge of frames, after the table of docs/adr/0009-port-security.md.

It shares no code with valed: ``judge(frame, port)`` tells whether a port may
send a frame. It needs the standard library only.
"""

import dataclasses
import ipaddress
import struct

_TAGS = (0x8100, 0x88a8, 0x9100)
_LINK_CONTROL_TYPES = (0x8808, 0x8809)
_AH, _FRAGMENT, _HOP_BY_HOP, _ROUTING = 51, 44, 0, 43
_CHAIN = {_HOP_BY_HOP, _ROUTING, _FRAGMENT, _AH, 60, 135, 139, 140}
_EXPERIMENTS = {253, 254}
_LONGEST_CHAIN = 8
_TRANSPORT = 24
_LARGEST = 65535
_ICMP = {0, 3, 8, 10, 11, 12, 13, 14, 15, 16, 42, 43}
_IGMP = {0x12, 0x16, 0x17, 0x22}
_ICMPV6 = {1, 2, 3, 4, 128, 129, 131, 132, 133, 135, 136, 143, 160, 161}
_WITHOUT_ADDRESS = {131, 133, 135, 143}


class Drop(Exception):
    """The port must not send the frame."""


@dataclasses.dataclass
class Port:
    """A switch port.

    :param owns: pairs of a MAC address and an IP network
    :param tags: VLAN tags are allowed
    :param secured: it has port security
    :param others: MAC addresses of the other stations
    """

    owns: tuple = ()
    tags: bool = False
    secured: bool = True
    others: frozenset = frozenset()

    def has(self, mac, packed):
        """Return whether an address belongs to a MAC address."""
        address = ipaddress.ip_address(packed)
        return any(own == mac and address in network
                   for own, network in self._all())

    def macs(self):
        """Return the port's MAC addresses."""
        return {mac for mac, _ in self.owns}

    def _all(self):
        yield from self.owns
        for mac in self.macs():
            yield mac, _link_local(mac)


def judge(frame, port):
    """Return whether a port may send a frame."""
    try:
        _frame(frame, port)
    except (Drop, struct.error, IndexError):
        return False
    return True


def _link_local(mac):
    """Return the address that RFC 4291 makes of a MAC address."""
    head = bytes((mac[0] ^ 2,)) + mac[1:3]
    return ipaddress.ip_network(
        b'\xfe\x80' + bytes(6) + head + b'\xff\xfe' + mac[3:])


def _need(condition):
    if not condition:
        raise Drop


def _frame(frame, port):
    target, mac, kind = struct.unpack('!6s6sH', frame[:14])
    data, tags = frame[14:], 0
    while kind in _TAGS:
        kind, = struct.unpack('!H', data[2:4])
        data, tags = data[4:], tags + 1
    _need(mac[0] % 2 == 0 and tags <= 2)
    _need(target[:5] != b'\x01\x80\xc2\0\0' or target[5] > 15)
    _need(kind not in _LINK_CONTROL_TYPES)
    if not port.secured:
        _need(mac not in port.others)
        return
    _need(mac in port.macs() and (port.tags or not tags))
    _need(kind in (0x0800, 0x0806, 0x86dd))
    {0x0800: _ipv4, 0x0806: _arp, 0x86dd: _ipv6}[kind](data, mac, port)


def _arp(data, mac, port):
    hardware, protocol, sizes, operation, sender_mac, sender, _, target = \
        struct.unpack('!HHHH6s4s6s4s', data[:28])
    _need((hardware, protocol, sizes) == (1, 0x0800, 0x0604))
    _need(operation in (1, 2) and sender_mac == mac)
    probe = operation == 1 and not any(sender)
    _need(port.has(mac, sender) or probe and port.has(mac, target))


def _ipv4(data, mac, port):
    first, _, total, _, place, _, kind, _, source, _ = struct.unpack(
        '!BBHHHBBH4s4s', data[:20])
    start = first % 16 * 4
    _need(first // 16 == 4 and 20 <= start <= total <= len(data))
    _options4(data[20:start])
    body = data[start:total]
    offset, more = place % 0x2000 * 8, place & 0x2000
    fragment = bool(offset or more)
    begins = not fragment or _is_first(offset, more, body)
    if begins:
        kind, body = _behind_ah(kind, body, fragment)
    request = (begins and not fragment and kind == 17
               and body[:4] == b'\0\x44\0\x43')
    _need(port.has(mac, source) or request and not any(source))
    if begins:
        _message4(kind, body)


def _options4(options):
    while options and options[0]:
        _need(options[0] not in (131, 137))
        size = 1 if options[0] == 1 else options[1]
        _need(size <= len(options) and (options[0] == 1 or size >= 2))
        options = options[size:]


def _is_first(offset, more, body):
    """Judge the place of a fragment; return whether it begins the packet."""
    _need(offset + len(body) <= _LARGEST)
    _need(not 0 < offset < _TRANSPORT)
    _need(offset or not more or len(body) >= _TRANSPORT)
    return not offset


def _behind_ah(kind, body, fragment):
    for _ in range(_LONGEST_CHAIN):
        if kind != _AH:
            return kind, body
        _need(not fragment)
        size = body[1] * 4 + 8
        _need(len(body) >= 8 and size <= len(body))
        kind, body = body[0], body[size:]
    _need(kind != _AH)
    return kind, body


def _message4(kind, body):
    if kind == 17:
        _datagram(body, 68)
    if kind == 1:
        _need(body[0] in _ICMP)
    if kind == 2:
        _need(body[0] in _IGMP)


def _datagram(body, client):
    _need(len(body) >= 8)
    _need(struct.unpack('!H', body[2:4])[0] != client)


def _ipv6(data, mac, port):
    first, size, kind, _, source, _ = struct.unpack('!IHBB16s16s', data[:40])
    _need(first >> 28 == 6 and 40 + size <= len(data))
    kind, body, part = _chain(kind, data[40:40 + size])
    whole = part == 'whole'
    nameless = (kind == 58 and whole and not any(source)
                and body[0] in _WITHOUT_ADDRESS)
    _need(port.has(mac, source) or nameless)
    if part == 'later':
        return
    if kind == 17:
        _datagram(body, 546)
    if kind == 58:
        _need(body[0] in _ICMPV6)
        if 133 <= body[0] <= 137:
            _need(whole)
            _discovery(body, mac, port, not any(source))


def _chain(kind, body):
    """Return what the extension headers carry, and its part of a packet."""
    part = 'whole'
    for count in range(_LONGEST_CHAIN + 1):
        if kind not in _CHAIN | _EXPERIMENTS:
            return kind, body, part
        _need(count < _LONGEST_CHAIN and part == 'whole')
        _need(kind in _CHAIN and (kind != _HOP_BY_HOP or count == 0))
        _need(len(body) >= 8)
        size = {_FRAGMENT: 8, _AH: body[1] * 4 + 8}.get(
            kind, body[1] * 8 + 8)
        _need(size <= len(body))
        _need(kind != _ROUTING or body[3] == 0)
        head, outer = body[:8], kind
        kind, body = head[0], body[size:]
        if outer == _FRAGMENT:
            place, = struct.unpack('!H', head[2:4])
            part = 'first'
            if not _is_first(place & 0xfff8, place & 1, body):
                return kind, body, 'later'
    raise Drop


def _discovery(body, mac, port, nameless):
    kind = body[0]
    start = 8 if kind == 133 else 24
    _need(len(body) >= start)
    if kind == 136 or kind == 135 and nameless:
        _need(port.has(mac, body[8:24]))
    options = body[start:]
    while len(options) >= 2:
        size = options[1] * 8
        _need(0 < size <= len(options))
        _need(options[0] not in (1, 2) or options[2:8] == mac)
        options = options[size:]

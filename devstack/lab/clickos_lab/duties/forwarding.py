# SPDX-License-Identifier: Apache-2.0
"""Duties of routed functions towards IPv4 packets."""

import random

from scapy import all as scapy

from clickos_lab.duties import duty
from clickos_lab.duties import place as places

_TOO_MANY, _MOST_ERRORS, _LEAST_ERRORS = 300, 150, 10
_NEED_FRAGMENTS, _TIME_EXCEEDED, _UNREACHABLE = 4, 11, 3
#: A payload of fragments; the first of a fragment of a ping.
_LONG = bytes(random.Random(36).randbytes(4000))
#: Routed by left's TTL, too.
_TTL_LEFT = (*duty.THROUGH, 'vpn-gateway')


def _icmp(kind, source, code=None):
    """Return a condition: an ICMP error; it says the packet quoted."""
    def wanted(frame):
        found = frame.getlayer(scapy.ICMP)
        if found is None or frame[scapy.IP].src != source \
                or found.type != kind or code not in (None, found.code):
            return None
        return found
    return wanted


def _quoted(found):
    return scapy.IP(bytes(found.payload))


@duty.duty('TTL 1 from left', 'RFC 1812, 5.3.1', _TTL_LEFT)
def ttl_from_left(case, place):
    since = place.left.mark()
    place.send(place.packet(ttl=1, id=11))
    found = place.left.expect(_icmp(_TIME_EXCEEDED, place.left_ip),
                              'time exceeded', since)
    case.assertEqual((places.LEFT_IP, 11),
                     (_quoted(found).src, _quoted(found).id))


@duty.duty('TTL 1 from right', 'RFC 1812, 5.3.1', (*duty.THROUGH, 'bras'))
def ttl_from_right(case, place):
    source = place.right_ip
    if place.name == 'bras':
        answer = scapy.IP(src=places.RIGHT_IP, dst=places.SUBSCRIBER) \
            / scapy.UDP(sport=1, dport=2)
    else:
        answer = place.open(sport=5002)
    station, since = place.right, place.right.mark()
    place.back(answer, ttl=1, id=12)
    if place.name == 'gre-gateway':     # the error goes back by the tunnel
        def wanted(frame):
            packet = place.arrived(frame)
            found = packet and packet.getlayer(scapy.ICMP)
            return found if found and found.type == _TIME_EXCEEDED else None
    else:
        wanted = _icmp(_TIME_EXCEEDED, source)
    found = station.expect(wanted, 'time exceeded', since)
    case.assertEqual((answer.dst, 12),
                     (_quoted(found).dst, _quoted(found).id))


@duty.duty('ICMP errors are limited, with a burst', 'RFC 1812, 4.3.2.8',
           _TTL_LEFT)
def limits_errors(case, place):
    since = place.left.mark()
    frame = bytes(scapy.Ether(src=place.left.mac, dst=place.left_mac)
                  / place.packet(ttl=1))
    for _ in range(_TOO_MANY):
        place.left.send(frame)
    ping(place, place.left, place.left_mac, place.left_ip)
    count = len(_errors(place, since))
    case.assertLessEqual(_LEAST_ERRORS, count)
    case.assertLess(count, _MOST_ERRORS)


def _errors(place, since):
    return place.left.found(_icmp(_TIME_EXCEEDED, place.left_ip), since)


def ping(place, station, mac, ip, words=b'ping', fragments=None):
    """Ping an address until an answer comes, behind all that was sent before.

    Again and again: a burst may have filled a queue.
    """
    number = random.Random(f'{ip}{words[:9]}').randrange(1 << 16)
    packet = scapy.IP(src=station.ip, dst=ip, id=number) / scapy.ICMP(
        id=number) / scapy.Raw(words)
    since = station.mark()

    def answered():
        if _is_answered(station, number, len(words), since):
            return True
        for part in fragments(packet) if fragments else [packet]:
            station.send_ip(part, mac)
        return False
    place.vnf.until(answered, f'{ip}: no answer to a ping of {len(words)}')


def _is_answered(station, number, length, since):
    """True if the whole answer to a ping came, maybe in fragments."""
    def part(frame):
        packet = frame.getlayer(scapy.IP)
        if packet is None or packet.dst != station.ip or packet.proto != 1:
            return None
        is_first = scapy.ICMP in packet and not packet.frag and (
            packet[scapy.ICMP].type, packet[scapy.ICMP].id) == (0, number)
        return packet if packet.frag or is_first else None
    parts = {packet.frag: packet.len - 20
             for packet in station.found(part, since)}
    return sum(parts.values()) == length + 8


def shuffled(packet):
    """Return a packet's fragments, the last one first."""
    return scapy.fragment(packet, 1400)[::-1]


@duty.duty('answers pings, also long ones', 'RFC 1812, 4.3.3.6', duty.ROUTED)
def own_pings(_case, place):
    for station, mac, ip in place.sides():
        ping(place, station, mac, ip)
        ping(place, station, mac, ip, _LONG, scapy.fragment)
        ping(place, station, mac, ip, _LONG[:3000], shuffled)
    if place.name in ('nat', 'cgn'):
        ping(place, place.right, place.right_mac, places.PUBLIC)
        ping(place, place.left, place.left_mac, places.PUBLIC)


@duty.duty('too long, must not be fragmented', 'RFC 1191', duty.THROUGH)
def path_mtu(case, place):
    since = place.left.mark()
    place.send(place.packet(_LONG[:1700], flags='DF', id=13))
    found = place.left.expect(
        lambda f: scapy.ICMP in f and f[scapy.ICMP].type == _UNREACHABLE
        and f[scapy.ICMP].code == _NEED_FRAGMENTS and f[scapy.ICMP],
        'fragmentation needed', since)
    mtu = {'gre-gateway': 1476}.get(place.name, 1500)
    quoted = _quoted(found)
    case.assertEqual((mtu, places.LEFT_IP, place.target()[0], 13),
                     (found.nexthopmtu, quoted.src, quoted.dst, quoted.id))


@duty.duty('too long, may be fragmented', 'RFC 1812, 5.2.6', duty.THROUGH)
def cuts(_case, place):
    since = place.right.mark()
    place.send(place.packet(_LONG[:1700], id=14))
    expect_whole(place, since, _LONG[:1700])


def expect_whole(place, since, words):
    """Wait at right until all fragments of a UDP packet are there."""
    def wanted(_frame):
        parts = place.right.found(
            lambda f: (p := place.arrived(f)) and p.proto == 17
            and (p.frag or p.flags.MF) and p, since)
        made = {}
        for part in parts:
            made[part.frag * 8] = bytes(part.payload)[:part.len - 20]
        data = b''.join(made[at] for at in sorted(made))
        return data[8:] == words and all(p.len <= 1500 for p in parts)
    place.right.expect(wanted, 'all fragments', since)


@duty.duty('fragments, in order and not', 'RFC 791', duty.THROUGH)
def fragments(_case, place):
    for number, order in enumerate((list, reversed)):
        words = _LONG[number:]
        packet = place.packet(words, sport=5010 + number, id=20 + number)
        since = place.right.mark()
        for part in order(scapy.fragment(packet, 1400)):
            place.send(part)
        expect_whole(place, since, words)


@duty.duty('fragments of answers', 'RFC 4787, REQ-14', duty.STATEFUL)
def fragments_of_answers(_case, place):
    answer = place.open(sport=5020) / scapy.Raw(_LONG)
    answer.id = 30
    since = place.left.mark()
    for part in shuffled(answer):
        place.right.send_ip(part, place.right_mac)

    def wanted(_frame):
        parts = place.left.found(
            lambda f: scapy.IP in f and f[scapy.IP].dst == places.LEFT_IP
            and f[scapy.IP].proto == 17 and f[scapy.IP], since)
        return sum(p.len - 20 for p in parts) == len(_LONG) + 8
    place.left.expect(wanted, 'all fragments', since)


def _stays(case, place, packets, words, wrap=None):
    """Check that packets do not pass: one behind them does."""
    since = place.right.mark()
    for packet in packets:
        frame = scapy.Ether(src=place.left.mac, dst=place.left_mac) / packet
        place.left.send(wrap(frame) if wrap else frame)
    place.through(place.packet(b'sentinel'), b'sentinel')
    case.assertEqual([], place.right.found(place.passed(words), since))


@duty.duty('drops impossible addresses', 'RFC 1812, 5.3.7', duty.THROUGH)
def martians(case, place):
    _stays(case, place, [
        place.packet(b'martian', src=source)
        for source in ('127.0.0.1', '224.0.0.9', duty.NO_ADDRESS, '240.0.0.1',
                       '255.255.255.255')] + [
        place.packet(b'martian', dst=target)
        for target in ('127.0.0.1', '0.0.0.1', '224.0.0.9',
                       '255.255.255.255')], b'martian')


@duty.duty('forwards no link broadcasts', 'RFC 1812, 5.3.4', duty.THROUGH)
def link_broadcasts(case, place):
    def broadcast(frame):
        frame.dst = 'ff:ff:ff:ff:ff:ff'
        return frame
    _stays(case, place, [place.packet(b'to all')], b'to all', broadcast)


@duty.duty('drops wrong header checksums', 'RFC 1812, 5.2.2', duty.THROUGH)
def checksums(case, place):
    _stays(case, place, [place.packet(b'wrong', chksum=1)], b'wrong')


@duty.duty('packets with options', 'RFC 1812, 5.2.4', duty.THROUGH)
def options(_case, place):
    nothing = scapy.IPOption_NOP()
    place.through(place.packet(b'options', options=[nothing] * 4),
                  b'options')


@duty.duty('priority tags', 'IEEE 802.1Q, 6.9', duty.THROUGH,
           in_guest=False)
def priority_tags(_case, place):
    since = place.right.mark()
    place.left.send(scapy.Ether(src=place.left.mac, dst=place.left_mac)
                    / scapy.Dot1Q(prio=5, vlan=0) / place.packet(b'tagged'))
    place.right.expect(place.passed(b'tagged'), 'tagged packet', since)

# SPDX-License-Identifier: Apache-2.0
"""Duties of load balancers: flows of servers, in both versions."""

from scapy import all as scapy

from clickos_lab.duties import duty
from clickos_lab.duties import forwarding
from clickos_lab.duties import place as places
from clickos_lab.duties import version6

_BALANCERS = ('load-balancer',)
_WORDS = bytes(range(256)) * 8


def _answer(found):
    """Return the headers of a server's answer to a packet."""
    udp = found[scapy.UDP]
    return scapy.IPv6(src=found[scapy.IPv6].dst, dst=found[scapy.IPv6].src) \
        / scapy.UDP(sport=udp.dport, dport=udp.sport)


def _open(place, words, sport):
    """Send a packet of a client; return it as the server gets it."""
    since = place.right.mark()
    place.left.send_ip(_question(place, sport) / scapy.Raw(words),
                       place.left_mac)
    return place.right.expect(version6.passed(words), 'packet', since)


def _question(place, sport):
    address, port = place.target6()
    return scapy.IPv6(src=places.LEFT_IP6, dst=address) \
        / scapy.UDP(sport=sport, dport=port)


def _is_right(packet):
    """True if the checksums of a packet are right."""
    made = packet.copy()
    for layer in (scapy.UDP, scapy.ICMPv6DestUnreach):
        if layer in made:
            name = 'chksum' if layer is scapy.UDP else 'cksum'
            setattr(made[layer], name, None)
            break
    return bytes(made) == bytes(packet)


@duty.duty('servers get IPv6 flows, clients their answers', 'none',
           _BALANCERS)
def answers(case, place):
    version6.teach(place)
    found = _open(place, b'question', 4000)
    case.assertEqual((places.LEFT_IP6, places.RIGHT_IP6),
                     (found[scapy.IPv6].src, found[scapy.IPv6].dst))
    case.assertTrue(_is_right(found[scapy.IPv6]))
    since = place.left.mark()
    place.right.send_ip(_answer(found) / scapy.Raw(b'response'),
                        place.right_mac)
    back = place.left.expect(version6.passed(b'response'), 'answer', since)
    address, port = place.target6()
    case.assertEqual((address, port, 4000), (
        back[scapy.IPv6].src, back[scapy.UDP].sport, back[scapy.UDP].dport))
    case.assertTrue(_is_right(back[scapy.IPv6]))


@duty.duty('errors of servers are about the service',
           'RFC 5508, REQ-4; RFC 4443, 3.1', _BALANCERS)
def errors(case, place):
    version6.teach(place)
    found = _open(place, b'refused', 4010)
    since = place.left.mark()
    place.right.send_ip(
        scapy.IPv6(src=places.RIGHT_IP6, dst=places.LEFT_IP6)
        / scapy.ICMPv6DestUnreach(code=4)
        / found[scapy.IPv6].copy(), place.right_mac)
    error = place.left.expect(
        lambda f: scapy.ICMPv6DestUnreach in f and f, 'error', since)
    quoted = scapy.IPv6(bytes(error[scapy.ICMPv6DestUnreach].payload))
    address, port = place.target6()
    case.assertEqual((address, address, port, 4010), (
        error[scapy.IPv6].src, quoted.dst, quoted[scapy.UDP].dport,
        quoted[scapy.UDP].sport))
    case.assertTrue(_is_right(error[scapy.IPv6]))
    case.assertTrue(_is_right(quoted))


@duty.duty('fragments of IPv6, both ways', 'RFC 8200, 4.5', _BALANCERS)
def fragments(_case, place):
    version6.teach(place)
    found = _open(place, b'opens', 4020)
    question = _question(place, 4020)
    for headers, sender, mac, receiver in (
            (question, place.left, place.left_mac, place.right),
            (_answer(found), place.right, place.right_mac, place.left)):
        since = receiver.mark()
        packet = scapy.IPv6(src=headers.src, dst=headers.dst) \
            / scapy.IPv6ExtHdrFragment(id=78) / headers[scapy.UDP] \
            / scapy.Raw(_WORDS)
        for part in scapy.fragment6(packet, 1000):
            sender.send_ip(part, mac)
        receiver.expect(
            lambda _f, receiver=receiver, since=since: sum(receiver.found(
                lambda f: scapy.IPv6ExtHdrFragment in f and len(bytes(
                    f[scapy.IPv6ExtHdrFragment].payload)), since))
            == len(_WORDS) + 8, 'all fragments', since)


@duty.duty('a draining server keeps its flows', 'none', _BALANCERS)
def drains(case, place):
    version6.teach(place)
    place.vnf.control.write('pool.draining',
                            f'{places.RIGHT_IP}, {places.RIGHT_IP6}')
    try:
        since = place.right.mark()
        place.left.send_ip(_question(place, 4031) / scapy.Raw(b'comes late'),
                           place.left_mac)
        place.send(place.packet(b'comes late', sport=4031))
        forwarding.ping(place, place.left, place.left_mac, place.left_ip,
                        b'behind them')
        place.vnf.control.write('pool.draining', '')
        _open(place, b'sentinel', 4032)
        case.assertEqual([], place.right.found(
            lambda f: b'comes late' in bytes(f), since))
        _open(place, b'known', 4030)
        place.open(b'known too', sport=4030)
        place.vnf.control.write('pool.draining',
                                f'{places.RIGHT_IP} {places.RIGHT_IP6}')
        _open(place, b'stays', 4030)
        place.open(b'stays too', sport=4030)
    finally:
        place.vnf.control.write('pool.draining', '')

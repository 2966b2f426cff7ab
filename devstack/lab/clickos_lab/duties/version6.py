# SPDX-License-Identifier: Apache-2.0
"""Duties of functions with IPv6."""

import random

from scapy import all as scapy

from clickos_lab.duties import duty
from clickos_lab.duties import place as places

DUAL = ('firewall', 'load-balancer', 'router', 'stateful-firewall')
_OWN = (*DUAL, 'mirror')
LEFT, RIGHT = places.LEFT_IP6, places.RIGHT_IP6
_TENTATIVE = '::'
_LONG = bytes(random.Random(6).randbytes(1700))


def _own(place):
    """Return the IPv6 addresses of the VNF at left and right."""
    return place.vnf.interfaces[0].ip6, place.vnf.interfaces[-1].ip6


def _advertisement(target, **fields):
    """Return a condition: a neighbor advertisement of a target."""
    def wanted(frame):
        found = frame.getlayer(scapy.ICMPv6ND_NA)
        return found and found.tgt == target and all(
            getattr(found, name) == value
            for name, value in fields.items()) and frame
    return wanted


def _solicit(station, target, source, **ether):
    """Send a solicitation for an address."""
    packet = scapy.IPv6(src=source, dst=target, hlim=255) \
        / scapy.ICMPv6ND_NS(tgt=target)
    if source != _TENTATIVE:
        packet /= scapy.ICMPv6NDOptSrcLLAddr(lladdr=station.mac)
    station.send(scapy.Ether(src=station.mac, **ether) / packet)


@duty.duty('answers duplicate address detection', 'RFC 4861, 7.2.4', _OWN)
def answers_detection(case, place):
    own, _ = _own(place)
    since = place.left.mark()
    _solicit(place.left, own, _TENTATIVE, dst='33:33:ff:00:00:01')
    frame = place.left.expect(_advertisement(own, S=0), 'advertisement',
                              since)
    case.assertEqual(('33:33:00:00:00:01', 'ff02::1'),
                     (frame.dst, frame[scapy.IPv6].dst))


@duty.duty('announces its IPv6 addresses', 'RFC 4861, 7.2.6', _OWN)
def announces(_case, place):
    for station, own in zip((place.left, place.right), _own(place)):
        station.expect(
            lambda f, own=own: f.dst == '33:33:00:00:00:01'
            and _advertisement(own, S=0, O=1)(f), f'announcement of {own}')


def teach(place):
    """Let both stations say their addresses by solicitations."""
    for station, mine, own, mac in (
            (place.left, LEFT, _own(place)[0], place.left_mac),
            (place.right, RIGHT, _own(place)[1], place.right_mac)):
        since = station.mark()
        _solicit(station, own, mine, dst=mac)
        station.expect(_advertisement(own, S=1), 'advertisement', since)


def udp(place, words, **ip):
    """Return a packet of left that goes through the VNF."""
    address, port = place.target6()
    return scapy.IPv6(src=LEFT, dst=address, **ip) / scapy.UDP(
        sport=5, dport=port) / scapy.Raw(words)


def passed(words):
    return lambda f: scapy.IPv6 in f and scapy.UDP in f \
        and bytes(f[scapy.UDP].payload) == words and f


def through(place, words):
    """Send a packet through the VNF; return the frame at right."""
    since = place.right.mark()
    place.left.send_ip(udp(place, words), place.left_mac)
    return place.right.expect(passed(words), 'packet', since)


@duty.duty('learns from solicitations and announcements',
           'RFC 4861, 7.2.3, 7.2.5', DUAL)
def learns(case, place):
    teach(place)
    case.assertEqual(place.right.mac, through(place, b'learned').dst)
    mac = '02:00:00:00:0b:99'
    place.right.send(
        scapy.Ether(src=mac, dst='33:33:00:00:00:01')
        / scapy.IPv6(src=RIGHT, dst='ff02::1', hlim=255)
        / scapy.ICMPv6ND_NA(tgt=RIGHT, R=0, S=0, O=1)
        / scapy.ICMPv6NDOptDstLLAddr(lladdr=mac))
    _ping6(place, place.right, _own(place)[1], place.right_mac, RIGHT)
    case.assertEqual(mac, through(place, b'moved').dst)
    teach(place)


def _ping6(place, station, own, mac, mine):
    """Ping an address of the VNF until an answer comes."""
    since = station.mark()
    place.vnf.until(lambda: station.send_ip(
        scapy.IPv6(src=mine, dst=own) / scapy.ICMPv6EchoRequest(id=7),
        mac) or station.found(
            lambda f: scapy.ICMPv6EchoReply in f, since), f'{own}: no answer')


@duty.duty('answers pings by IPv6', 'RFC 4443, 4.2', _OWN)
def own_pings(_case, place):
    teach(place)
    left, right = _own(place)
    _ping6(place, place.left, left, place.left_mac, LEFT)
    _ping6(place, place.right, right, place.right_mac, RIGHT)


@duty.duty('hop limit 1, from the right side', 'RFC 4443, 3.3', DUAL)
def hop_limit(case, place):
    teach(place)
    # a firewall knows it as the answer
    back = scapy.IPv6(src=RIGHT, dst=LEFT, hlim=1) / scapy.UDP(
        sport=place.target6()[1], dport=5) / scapy.Raw(b'late')
    for station, packet, own, mac in (
            (place.left, udp(place, b'late', hlim=1), _own(place)[0],
             place.left_mac),
            (place.right, back, _own(place)[1], place.right_mac)):
        since = station.mark()
        station.send_ip(packet, mac)
        found = station.expect(
            lambda f: scapy.ICMPv6TimeExceeded in f and f, 'error', since)
        case.assertEqual(own, found[scapy.IPv6].src)


@duty.duty('packet too big', 'RFC 4443, 3.2', DUAL)
def too_big(case, place):
    teach(place)
    since = place.left.mark()
    place.left.send_ip(udp(place, _LONG), place.left_mac)
    found = place.left.expect(
        lambda f: scapy.ICMPv6PacketTooBig in f and f, 'error', since)
    error = found[scapy.ICMPv6PacketTooBig]
    case.assertEqual((1500, _own(place)[0]),
                     (error.mtu, found[scapy.IPv6].src))
    quoted = scapy.IPv6(bytes(error.payload))
    case.assertEqual((LEFT, place.target6()[0]), (quoted.src, quoted.dst))


@duty.duty('ICMPv6 errors are limited, with a burst', 'RFC 4443, 2.4 (f)',
           DUAL)
def limits_errors(case, place):
    teach(place)
    since = place.left.mark()
    frame = bytes(scapy.Ether(src=place.left.mac, dst=place.left_mac)
                  / udp(place, b'late', hlim=1))
    for _ in range(300):
        place.left.send(frame)
    _ping6(place, place.left, _own(place)[0], place.left_mac, LEFT)
    count = len(place.left.found(lambda f: scapy.ICMPv6TimeExceeded in f,
                                 since))
    case.assertLessEqual(10, count)
    case.assertLess(count, 150)


@duty.duty('drops impossible IPv6 addresses', 'RFC 4291, 2.7', DUAL)
def martians(case, place):
    teach(place)
    since = place.right.mark()
    for source in ('::', '::1', 'fe80::9', 'ff02::1'):
        packet = udp(place, b'martian')
        packet.src = source
        place.left.send_ip(packet, place.left_mac)
    through(place, b'sentinel')
    case.assertEqual([], place.right.found(passed(b'martian'), since))


@duty.duty('priority tags with IPv6', 'IEEE 802.1Q, 6.9', DUAL,
           in_guest=False)
def priority_tags(_case, place):
    teach(place)
    since = place.right.mark()
    place.left.send(scapy.Ether(src=place.left.mac, dst=place.left_mac)
                    / scapy.Dot1Q(prio=5, vlan=0)
                    / udp(place, b'tagged'))
    place.right.expect(passed(b'tagged'), 'tagged packet', since)

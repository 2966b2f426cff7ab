# SPDX-License-Identifier: Apache-2.0
"""Duties of firewalls: rules and flows of both versions."""

from scapy import all as scapy

from clickos_lab.duties import duty
from clickos_lab.duties import forwarding
from clickos_lab.duties import place as places
from clickos_lab.duties import version6

_FILTERS = ('firewall', 'stateful-firewall')
_STATEFUL = ('stateful-firewall',)
#: Those through which IPv6 passes with its addresses.
ROUTERS6 = tuple(name for name in version6.DUAL if name != 'load-balancer')
_ESP = 50


class _Version:
    """The headers, addresses and ICMP errors of a version of IP."""

    def __init__(self, place, number):
        self.place, self.number = place, number
        self.left = version6.LEFT if number == 6 else places.LEFT_IP
        self.right = version6.RIGHT if number == 6 else places.RIGHT_IP
        if number == 6:
            version6.teach(place)

    def packet(self, source, target, **fields):
        kind = scapy.IPv6 if self.number == 6 else scapy.IP
        return kind(src=source, dst=target, **fields)

    def out(self, upper):
        """Send a packet of left; wait until right has it."""
        return self._through(self.place.left, self.place.left_mac,
                             self.place.right, self.left, self.right, upper)

    def back(self, upper):
        """Send a packet of right; wait until left has it."""
        return self._through(self.place.right, self.place.right_mac,
                             self.place.left, self.right, self.left, upper)

    def _through(self, sender, mac, receiver, source, target, upper):
        packet = self.packet(source, target) / upper
        wanted = bytes(upper.payload)[-8:] or bytes(upper)[:8]
        since = receiver.mark()
        sender.send_ip(packet, mac)
        return receiver.expect(
            lambda f: wanted in bytes(f) and scapy.Ether in f and f,
            upper.summary(), since)

    def stays(self, case, packets, station='right'):
        """Check that packets of a side do not pass: one behind them does."""
        sender, mac, receiver = (
            (self.place.right, self.place.right_mac, self.place.left)
            if station == 'right' else
            (self.place.left, self.place.left_mac, self.place.right))
        since = receiver.mark()
        for packet in packets:
            sender.send_ip(packet, mac)
        self.out(scapy.UDP(sport=7, dport=7) / scapy.Raw(b'sentinel'))
        self.back(scapy.UDP(sport=7, dport=7) / scapy.Raw(b'sentinel'))
        for packet in packets:
            tail = bytes(packet)[-8:]
            case.assertEqual([], receiver.found(
                lambda f, tail=tail: tail in bytes(f), since),
                packet.summary())

    def error(self, about, source=None):
        """Return an ICMP error of right's side about a packet."""
        head = self.packet(source or self.right, self.left)
        if self.number == 6:
            return head / scapy.ICMPv6DestUnreach(code=4) / about
        return head / scapy.ICMP(type=3, code=3) / about


def _udp(sport, dport, words):
    return scapy.UDP(sport=sport, dport=dport) / scapy.Raw(words)


@duty.duty('passes what left begins, and its answers', 'RFC 6092, 3.2.3',
           _STATEFUL)
def begins(case, place):
    for number in (4, 6):
        version = _Version(place, number)
        version.out(_udp(3000, 3001, b'question'))
        version.back(_udp(3001, 3000, b'response'))
        ends = (version.right, version.left)
        version.stays(case, [
            version.packet(*ends) / _udp(3002, 3000, b'stranger'),
            version.packet(*ends) / _udp(3001, 3003, b'elsewher'),
            version.packet(*ends) / scapy.TCP(
                sport=3001, dport=3000, flags='S') / scapy.Raw(b'connects')])


@duty.duty('errors about its flows pass', 'RFC 5508, REQ-4; RFC 6092, 3.2.1',
           _STATEFUL)
def errors(case, place):
    for number in (4, 6):
        version = _Version(place, number)
        about = version.packet(version.left, version.right) \
            / _udp(3010, 3011, b'an error')
        version.out(_udp(3010, 3011, b'an error'))
        stranger = version.packet(version.left, version.right) \
            / _udp(3012, 3011, b'no flow!')
        version.stays(case, [version.error(stranger)])
        since = place.left.mark()
        place.right.send_ip(version.error(about), place.right_mac)
        place.left.expect(lambda f: bytes(about)[-8:] in bytes(f), 'error',
                          since)


@duty.duty('drops TCP beyond its window', 'RFC 9293, 3.4', _STATEFUL)
def windows(case, place):
    for number in (4, 6):
        version = _Version(place, number)
        ends = {'sport': 3020, 'dport': 80}
        back = {'sport': 80, 'dport': 3020}
        version.out(scapy.TCP(flags='S', seq=1000 + number, window=1000,
                              **ends))
        version.back(scapy.TCP(flags='SA', seq=7000, ack=1001 + number,
                               window=1000, **back))
        version.out(scapy.TCP(flags='A', seq=1001 + number, ack=7001,
                              window=1000, **ends) / scapy.Raw(b'question'))
        fields = {'ack': 1009 + number, 'window': 1000, **back}
        head = version.packet(version.right, version.left)
        version.stays(case, [
            head / scapy.TCP(flags='A', seq=90_000, **fields)
            / scapy.Raw(b'too far!'),
            head / scapy.TCP(flags='R', seq=90_000, **back)
            / scapy.Raw(b'resets!!'),
            head / scapy.TCP(flags='A', seq=7001, **{
                **fields, 'ack': 2_000_000}) / scapy.Raw(b'too soon')])
        version.back(scapy.TCP(flags='A', seq=7001, **fields)
                     / scapy.Raw(b'response'))


@duty.duty('IPsec may begin at right, by IPv6', 'RFC 6092, 3.2.4', _STATEFUL)
def ipsec(_case, place):
    version = _Version(place, 6)
    since = place.left.mark()
    place.right.send_ip(version.packet(
        version.right, version.left, nh=_ESP) / scapy.Raw(b'tunneled'),
        place.right_mac)
    place.left.expect(lambda f: b'tunneled' in bytes(f), 'ESP', since)
    version.back(_udp(500, 500, b'exchange'))


@duty.duty('fragments of IPv6', 'RFC 8200, 4.5', ROUTERS6)
def fragments(_case, place):
    version = _Version(place, 6)
    words = bytes(range(256)) * 8
    for source, target, sender, mac, receiver in (
            (version.left, version.right, place.left, place.left_mac,
             place.right),
            (version.right, version.left, place.right, place.right_mac,
             place.left)):
        since = receiver.mark()
        packet = version.packet(source, target) \
            / scapy.IPv6ExtHdrFragment(id=77) / _udp(3030, 3030, words)
        for part in scapy.fragment6(packet, 1000):
            sender.send_ip(part, mac)
        receiver.expect(
            lambda _f, receiver=receiver, since=since: sum(receiver.found(
                lambda f: scapy.IPv6ExtHdrFragment in f and len(bytes(
                    f[scapy.IPv6ExtHdrFragment].payload)), since))
            == len(words) + 8, 'all fragments', since)


@duty.duty('rules find ports behind extension headers', 'RFC 8200, 4',
           _FILTERS)
def behind_headers(case, place):
    version = _Version(place, 6)
    with _Rules(place, 'deny udp dst port 3041, allow all'):
        head = version.packet(version.left, version.right)
        version.stays(case, [
            head / headers / _udp(3040, 3041, b'hidden!!')
            for headers in (scapy.IPv6ExtHdrHopByHop(),
                            scapy.IPv6ExtHdrDestOpt(),
                            scapy.IPv6ExtHdrFragment(m=1))], 'left')


@duty.duty('drops what hides its protocol', 'RFC 7112', _FILTERS)
def hidden(case, place):
    version = _Version(place, 6)
    headers = scapy.IPv6ExtHdrDestOpt()
    for _ in range(9):
        headers /= scapy.IPv6ExtHdrDestOpt()
    version.stays(case, [version.packet(version.left, version.right) / headers
                         / _udp(3042, 3043, b'nine of!')], 'left')


class _Rules:
    """Other rules for a while; they are to pass the sentinel."""

    def __init__(self, place, rules):
        self.place, self.rules = place, rules

    def __enter__(self):
        self.place.vnf.control.write('fw.config', self.rules)

    def __exit__(self, *_error):
        self.place.vnf.control.write('fw.config', 'allow all')


@duty.duty('tells which rule dropped what', 'none', _FILTERS)
def flow_log(case, place):
    rule = 'deny udp dst port 3051'
    with _Rules(place, f'{rule}, allow all'):
        for number in (4, 6):
            version = _Version(place, number)
            for _ in range(2):
                version.stays(case, [
                    version.packet(version.left, version.right)
                    / _udp(3050, 3051, b'is denied')], 'left')
            case.assertIn(
                f' 2 17 {version.left} 3050 {version.right} 3051 {rule}\n',
                place.vnf.control.read('fw.log') + '\n')


@duty.duty('keeps its flows through a hot swap', 'none',
           _STATEFUL)
def survives(_case, place):
    versions = [_Version(place, number) for number in (4, 6)]
    for version in versions:
        version.out(_udp(3060, 3061, b'question'))
    place.vnf.swap()
    place.vnf.control.write('fw.config', 'allow all')
    forwarding.ping(place, place.left, place.left_mac, place.left_ip)
    for version in versions:
        if version.number == 6:
            version6.teach(place)
        version.back(_udp(3061, 3060, b'response'))

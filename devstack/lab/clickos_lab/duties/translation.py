# SPDX-License-Identifier: Apache-2.0
"""Duties of NAT and carrier-grade NAT."""

import re

from scapy import all as scapy

from clickos_lab.duties import duty
from clickos_lab.duties import forwarding
from clickos_lab.duties import place as places

_SECOND = '10.9.2.78'
#: RFC 5382, REQ-5: seconds without a packet, of connections that are open
#: and of others.
_ESTABLISHED_S, _TRANSITORY_S = 7440, 240


@duty.duty('one public port for all targets', 'RFC 4787, REQ-1',
           duty.TRANSLATORS)
def maps_by_endpoint(case, place):
    ports = {place.open(f'to {target}'.encode(), sport=5100,
                        dst=target).dport
             for target in (places.RIGHT_IP, _SECOND)}
    case.assertEqual(1, len(ports), ports)


@duty.duty('hairpin by the public address, UDP', 'RFC 4787, REQ-9',
           duty.TRANSLATORS)
def hairpin_udp(case, place):
    first = place.open(sport=5110)
    second = place.open(sport=5111, station=place.other, src=places.OTHER_IP)
    since = place.left.mark()
    words = scapy.Raw(b'hairpin')
    place.send(scapy.IP(src=places.OTHER_IP, dst=first.dst) / scapy.UDP(
        sport=5111, dport=first.dport) / words, place.other)
    found = place.left.expect(_udp(places.LEFT_IP, 5110), 'hairpin', since)
    case.assertEqual((second.dst, second.dport),
                     (found[scapy.IP].src, found[scapy.UDP].sport))
    since = place.other.mark()
    place.send(scapy.IP(src=places.LEFT_IP, dst=second.dst) / scapy.UDP(
        sport=5110, dport=second.dport) / words)
    found = place.other.expect(_udp(places.OTHER_IP, 5111), 'answer', since)
    case.assertEqual((first.dst, first.dport),
                     (found[scapy.IP].src, found[scapy.UDP].sport))


def _udp(ip, port):
    return lambda f: scapy.UDP in f and (
        f[scapy.IP].dst, f[scapy.UDP].dport) == (ip, port) and f


def _tcp(ip, port, flags):
    return lambda f: scapy.TCP in f and (
        f[scapy.IP].dst, f[scapy.TCP].dport,
        str(f[scapy.TCP].flags)) == (ip, port, flags) and f


def _syn(place, source, port, to, station):
    """Open a connection to a host; return the SYN as it arrives."""
    since = place.right.mark()
    place.send(scapy.IP(src=source, dst=to) / scapy.TCP(
        sport=port, dport=80, flags='S'), station)
    return place.right.expect(_tcp(to, 80, 'S'), 'SYN', since)


@duty.duty('hairpin by the public address, TCP', 'RFC 5382, REQ-8',
           duty.TRANSLATORS)
def hairpin_tcp(case, place):
    first = _syn(place, places.LEFT_IP, 5120, places.RIGHT_IP, place.left)
    public, port = first[scapy.IP].src, first[scapy.TCP].sport
    since = place.left.mark()
    place.send(scapy.IP(src=places.OTHER_IP, dst=public) / scapy.TCP(
        sport=5121, dport=port, flags='S'), place.other)
    found = place.left.expect(_tcp(places.LEFT_IP, 5120, 'S'), 'SYN', since)
    case.assertEqual(public, found[scapy.IP].src)
    since = place.other.mark()
    place.send(scapy.IP(src=places.LEFT_IP, dst=public) / scapy.TCP(
        sport=5120, dport=found[scapy.TCP].sport, flags='SA'))
    answer = place.other.expect(_tcp(places.OTHER_IP, 5121, 'SA'), 'SYN ACK',
                                since)
    case.assertEqual((public, port),
                     (answer[scapy.IP].src, answer[scapy.TCP].sport))


@duty.duty('drops packets from its public addresses', 'RFC 1812, 5.3.8',
           duty.TRANSLATORS)
def no_public_sources(case, place):
    first = place.open(sport=5134)
    second = place.open(sport=5135, station=place.other, src=places.OTHER_IP)
    hairpin = scapy.IP(src=places.OTHER_IP, dst=first.dst) / scapy.UDP(
        sport=5135, dport=first.dport)
    since = place.left.mark()
    forged = scapy.IP(src=second.dst, dst=first.dst) / scapy.UDP(
        sport=second.dport, dport=first.dport) / scapy.Raw(b'forged')
    place.send(hairpin / scapy.Raw(b'begins'), place.other)
    place.left.expect(_udp(places.LEFT_IP, 5134), 'hairpin', since)
    place.send(forged)
    place.right.send_ip(forged, place.right_mac)
    for sends in (lambda: place.back(first / scapy.Raw(b'answer')),
                  lambda: place.send(hairpin / scapy.Raw(b'l'), place.other)):
        since = place.left.mark()
        sends()     # behind the forged ones at both links
        place.left.expect(_udp(places.LEFT_IP, 5134), 'packet', since)
    case.assertEqual([], place.left.found(
        lambda f: b'forged' in bytes(f)))


@duty.duty('others reach no port in use', 'RFC 4787, REQ-8', duty.TRANSLATORS)
def filters(case, place):
    answer = place.open(sport=5130)
    since = place.left.mark()
    stranger = answer.copy()
    stranger.src = _SECOND
    place.back(stranger / scapy.Raw(b'stranger'))
    place.back(answer / scapy.Raw(b'answer'))
    place.left.expect(_udp(places.LEFT_IP, 5130), 'answer', since)
    case.assertEqual([], place.left.found(
        lambda f: scapy.Raw in f and f[scapy.Raw].load == b'stranger',
        since))


@duty.duty('others reach a port in use, if asked for', 'RFC 4787, REQ-8',
           duty.TRANSLATORS)
def admits(_case, place):
    with places.opened(place.name,
                       filtering='endpoint-independent') as more:
        answer = more.open(sport=5131)
        answer.src = _SECOND
        since = more.left.mark()
        more.back(answer / scapy.Raw(b'stranger'))
        more.left.expect(_udp(places.LEFT_IP, 5131), 'stranger', since)


@duty.duty('only known addresses reach a port in use, if asked for',
           'RFC 4787, REQ-8', duty.TRANSLATORS)
def admits_addresses(case, place):
    with places.opened(place.name, filtering='address-dependent') as more:
        answer = more.open(sport=5132)
        since = more.left.mark()
        stranger = answer.copy()
        stranger.src = _SECOND
        more.back(stranger / scapy.Raw(b'stranger'))
        answer[scapy.UDP].sport += 1
        more.back(answer / scapy.Raw(b'other port'))
        more.left.expect(_udp(places.LEFT_IP, 5132), 'other port', since)
        case.assertEqual([], more.left.found(
            lambda f: scapy.Raw in f and f[scapy.Raw].load == b'stranger',
            since))


@duty.duty('a public port for each target, if asked for', 'RFC 4787, 4.1',
           ('nat',))
def maps_by_target(case, place):
    with places.opened(place.name,
                       mapping='address-and-port-dependent') as more:
        ports = {more.open(f'to {target}'.encode(), sport=5133,
                           dst=target).dport
                 for target in (places.RIGHT_IP, _SECOND)}
        case.assertEqual(2, len(ports), ports)


@duty.duty('a forged reset ends no connection', 'RFC 7857, 2.2',
           ('cgn', 'nat', 'load-balancer'))
def resets(case, place):
    connection = _Connection(place, 5150)
    connection.open()
    established = connection.seconds_left()
    connection.send(flags='RA')
    connection.until(lambda left: left <= _TRANSITORY_S)
    connection.send(b'more text', flags='PA')
    connection.until(lambda left: left > _TRANSITORY_S)
    case.assertGreaterEqual(established, _ESTABLISHED_S)


@duty.duty('times of silence, which change for known flows',
           'RFC 4787, REQ-5; RFC 5382, REQ-5; RFC 5508, REQ-2',
           (*duty.TRANSLATORS, 'stateful-firewall'))
def timeouts(case, place):
    control, is_nat = place.vnf.control, place.name in duty.TRANSLATORS
    for name, least_s in (
            ('flows.udp_timeout', 120), ('flows.tcp_timeout', _ESTABLISHED_S),
            ('flows.tcp_transitory_timeout', _TRANSITORY_S),
            ('pings.timeout' if is_nat else 'flows.icmp_timeout', 60)):
        case.assertGreaterEqual(int(control.read(name)), least_s, name)
    table = 'flows.udp_table' if is_nat else 'flows.table'

    def is_known():
        return re.search(r'\b5146\b', control.read(table)) is not None
    before = control.read('flows.udp_timeout')
    place.through(place.packet(b'timed', sport=5146), b'timed')
    case.assertTrue(is_known())
    control.write('flows.udp_timeout', '1')
    place.vnf.until(lambda: not is_known(), 'the flow is still known')
    control.write('flows.udp_timeout', before)


@duty.duty('an established connection need not carry text',
           'RFC 5382, REQ-5', duty.TRANSLATORS)
def silent(case, place):
    connection = _Connection(place, 5147)
    connection.shake_hands()
    connection.until(lambda left: left >= _ESTABLISHED_S)


class _Connection:
    """A connection of left; right repeats what it gets."""

    def __init__(self, place, port):
        self.place, self.port = place, port
        self.target, self.service = place.target()

    def send(self, words=b'', **fields):
        """Send a segment of left; return it as right gets it."""
        since = self.place.right.mark()
        self.place.send(scapy.IP(src=places.LEFT_IP, dst=self.target)
                        / scapy.TCP(sport=self.port, dport=self.service,
                                    **fields) / scapy.Raw(words))
        return self.place.right.expect(
            lambda f: scapy.TCP in f and f[scapy.IP].dst == places.RIGHT_IP
            and f[scapy.TCP].dport == self.service
            and bytes(f[scapy.TCP].payload)[:len(words)] == words and f,
            'segment', since)

    def shake_hands(self):
        """Open the connection without text."""
        got = self.send(flags='S')
        answer = scapy.IP(src=places.RIGHT_IP, dst=got[scapy.IP].src) \
            / scapy.TCP(sport=self.service, dport=got[scapy.TCP].sport,
                        flags='SA')
        since = self.place.left.mark()
        self.place.right.send_ip(answer, self.place.right_mac)
        self.place.left.expect(_tcp(places.LEFT_IP, self.port, 'SA'),
                               'SYN ACK', since)
        self.send(flags='A')

    def open(self):
        got = self.send(flags='S')
        for flags, words in (('SA', b''), ('PA', b'response')):
            since = self.place.left.mark()
            self.place.right.send_ip(
                scapy.IP(src=places.RIGHT_IP, dst=got[scapy.IP].src)
                / scapy.TCP(sport=self.service, dport=got[scapy.TCP].sport,
                            flags=flags) / scapy.Raw(words),
                self.place.right_mac)
            self.place.left.expect(_tcp(places.LEFT_IP, self.port, flags),
                                   flags, since)
            self.send(b'question', flags='PA')

    def seconds_left(self):
        """Return how long the flow is kept without a packet."""
        (line,) = [line for line in self.place.vnf.control.read(
            'flows.tcp_table').splitlines()
            if line.startswith(f'({places.LEFT_IP}, {self.port}, ')]
        return int(line.split()[-1].removeprefix('exp'))

    def until(self, condition):
        self.place.vnf.until(lambda: condition(self.seconds_left()),
                             'the time of the flow')


@duty.duty('errors from outside reach the inside', 'RFC 5508, REQ-4',
           duty.TRANSLATORS)
def errors_from_outside(case, place):
    since = place.right.mark()
    place.send(place.packet(b'unreachable', sport=5140))
    sent = place.right.expect(place.passed(b'unreachable'), 'packet', since)
    since = place.left.mark()
    place.right.send_ip(scapy.IP(src=places.RIGHT_IP, dst=sent.src)
                        / scapy.ICMP(type=3, code=3)
                        / scapy.Raw(bytes(sent)[:48]), place.right_mac)
    found = place.left.expect(
        lambda f: scapy.ICMP in f and f[scapy.ICMP].type == 3
        and f[scapy.ICMP].code == 3 and f, 'error', since)
    quoted = scapy.IP(bytes(found[scapy.ICMP].payload))
    case.assertEqual((places.LEFT_IP, 5140),
                     (quoted.src, quoted[scapy.UDP].sport))


def _quoting(sent, to, **icmp):
    """Return an ICMP message of right about a packet as right got it."""
    return scapy.IP(src=places.RIGHT_IP, dst=to) / scapy.ICMP(**icmp) \
        / scapy.Raw(bytes(sent)[:48])


@duty.duty('an error reaches the sender of what it quotes only',
           'RFC 5508, REQ-3', ('stateful-firewall',))
def errors_to_others(case, place):
    since = place.right.mark()
    place.send(place.packet(b'quoted', sport=5144))
    sent = place.right.expect(place.passed(b'quoted'), 'packet', since)
    since = place.left.mark()
    for to in (places.OTHER_IP, places.LEFT_IP):
        place.right.send_ip(_quoting(sent, to, type=3, code=3),
                            place.right_mac)

    def error(to):
        return lambda f: scapy.ICMP in f and f[scapy.ICMP].type == 3 \
            and f[scapy.IP].dst == to
    place.left.expect(error(places.LEFT_IP), 'error', since)
    case.assertEqual([], place.left.found(error(places.OTHER_IP), since))


@duty.duty('forwards no redirect', 'RFC 1122, 3.2.2.2',
           ('cgn', 'firewall', 'nat', 'router', 'stateful-firewall'))
def no_redirects(case, place):
    since = place.right.mark()
    place.send(place.packet(b'redirected', sport=5145))
    sent = place.right.expect(place.passed(b'redirected'), 'packet', since)
    since = place.left.mark()
    for kind in (5, 3):
        place.right.send_ip(_quoting(sent, sent.src, type=kind, code=1),
                            place.right_mac)
    place.left.expect(lambda f: scapy.ICMP in f and f[scapy.ICMP].type == 3,
                      'error', since)
    case.assertEqual([], place.left.found(
        lambda f: scapy.ICMP in f and f[scapy.ICMP].type == 5, since))


@duty.duty('errors from inside reach the outside', 'RFC 5508, REQ-5',
           duty.TRANSLATORS)
def errors_from_inside(case, place):
    sent = place.open(sport=5141)
    since = place.left.mark()
    place.back(sent / scapy.Raw(b'no port'))
    got = place.left.expect(_udp(places.LEFT_IP, 5141), 'answer', since)
    since = place.right.mark()
    place.send(scapy.IP(src=places.LEFT_IP, dst=places.RIGHT_IP)
               / scapy.ICMP(type=3, code=3)
               / scapy.Raw(bytes(got[scapy.IP])[:48]))
    found = place.right.expect(
        lambda f: scapy.ICMP in f and f[scapy.ICMP].type == 3 and f, 'error',
        since)
    quoted = scapy.IP(bytes(found[scapy.ICMP].payload))
    case.assertEqual(
        (sent.dst, sent.dst, sent.dport),
        (found[scapy.IP].src, quoted.dst, quoted[scapy.UDP].dport))


@duty.duty('errors reach hosts behind a gateway', 'RFC 5508, REQ-4', ('nat',))
def errors_behind_a_gateway(case, place):
    sent = place.open(sport=5160, station=place.other, src=places.BEHIND_IP)
    since = place.other.mark()
    place.right.send_ip(
        scapy.IP(src=places.RIGHT_IP, dst=sent.dst)
        / scapy.ICMP(type=3, code=3)
        / scapy.IP(src=sent.dst, dst=places.RIGHT_IP)
        / scapy.UDP(sport=sent.dport, dport=sent.sport), place.right_mac)
    found = place.other.expect(_error(places.BEHIND_IP, 3), 'error', since)
    quoted = scapy.IP(bytes(found[scapy.ICMP].payload))
    case.assertEqual((places.BEHIND_IP, 5160),
                     (quoted.src, quoted[scapy.UDP].sport))


def _error(ip, code):
    """Return a condition: an unreachable message to a host."""
    return lambda f: scapy.ICMP in f and f[scapy.IP].dst == ip and (
        f[scapy.ICMP].type, f[scapy.ICMP].code) == (3, code) and f


@duty.duty('errors about hairpinned packets', 'RFC 5508, REQ-7',
           duty.TRANSLATORS)
def hairpin_errors(case, place):
    first = place.open(sport=5161)
    second = place.open(sport=5162, station=place.other, src=places.OTHER_IP)
    since, mark = place.left.mark(), place.other.mark()
    sends = scapy.IP(src=places.OTHER_IP, dst=first.dst, flags='DF') \
        / scapy.UDP(sport=5162, dport=first.dport)
    place.send(sends / scapy.Raw(b'hairpin'), place.other)
    got = place.left.expect(_udp(places.LEFT_IP, 5161), 'hairpin', since)
    place.send(scapy.IP(src=places.LEFT_IP, dst=second.dst)
               / scapy.ICMP(type=3, code=3)
               / scapy.Raw(bytes(got[scapy.IP])[:28]))
    found = place.other.expect(_error(places.OTHER_IP, 3), 'error', mark)
    case.assertEqual(first.dst, found[scapy.IP].src)
    _check_quoted(case, found, sends)
    mark = place.other.mark()
    place.send(sends / scapy.Raw(bytes(1600)), place.other)
    found = place.other.expect(_error(places.OTHER_IP, 4),
                               'fragmentation needed', mark)
    case.assertEqual(1500, found[scapy.ICMP].nexthopmtu)
    _check_quoted(case, found, sends)
    mark = place.other.mark()
    sends.ttl = 1
    place.send(sends, place.other)
    place.other.expect(
        lambda f: scapy.ICMP in f and f[scapy.ICMP].type == 11
        and f[scapy.IP].dst == places.OTHER_IP, 'time exceeded', mark)


def _check_quoted(case, error, sent):
    quoted = scapy.IP(bytes(error[scapy.ICMP].payload))
    case.assertEqual(
        (sent.src, sent.sport, sent.dst, sent.dport),
        (quoted.src, quoted.sport, quoted.dst, quoted.dport))


@duty.duty('an ICMP error ends no mapping', 'RFC 4787, REQ-10',
           duty.TRANSLATORS)
def errors_end_nothing(case, place):
    first = place.open(sport=5142)
    errors_from_outside(case, place)
    place.right.send_ip(
        scapy.IP(src=places.RIGHT_IP, dst=first.dst)
        / scapy.ICMP(type=3, code=3)
        / scapy.Raw(bytes(scapy.IP(src=first.dst, dst=places.RIGHT_IP)
                          / scapy.UDP(sport=first.dport,
                                      dport=first.sport))), place.right_mac)
    case.assertEqual(first.dport, place.open(sport=5142).dport)


@duty.duty('TCP opened by both sides at once', 'RFC 5382, REQ-2',
           duty.TRANSLATORS)
def opens_from_both_sides(case, place):
    sent = _syn(place, places.LEFT_IP, 5143, places.RIGHT_IP, place.left)
    public, port = sent[scapy.IP].src, sent[scapy.TCP].sport
    since = place.left.mark()
    place.right.send_ip(
        scapy.IP(src=places.RIGHT_IP, dst=public)
        / scapy.TCP(sport=80, dport=port, flags='S'), place.right_mac)
    found = place.left.expect(_tcp(places.LEFT_IP, 5143, 'S'), 'SYN', since)
    case.assertEqual(80, found[scapy.TCP].sport)


@duty.duty('a free port is kept', 'RFC 4787, REQ-3', ('nat',))
def keeps_ports(case, place):
    case.assertEqual(20042, place.open(sport=20042).dport)


@duty.duty('even ports stay even, odd ones odd', 'RFC 4787, REQ-4',
           duty.TRANSLATORS)
def keeps_parity(case, place):
    with places.opened(place.name) as more:     # all its ports are free
        for sport in range(6000, 6006):
            found = more.open(f'from {sport}'.encode(), sport=sport).dport
            case.assertEqual(sport % 2, found % 2, (sport, found))


@duty.duty('pings through it, also long ones', 'RFC 5508, REQ-1',
           duty.TRANSLATORS)
def pings_through(_case, place):
    for length, parts in ((8, None), (4000, scapy.fragment)):
        words = bytes(length)
        # the kernel's host puts fragments together
        forwarding.ping(place, place.left, place.left_mac,
                        place.vnf.address('right'), words, parts)

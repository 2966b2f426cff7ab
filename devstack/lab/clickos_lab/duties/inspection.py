# SPDX-License-Identifier: Apache-2.0
"""Duties of functions that judge packets, and of the DHCP relay."""

import itertools

from scapy import all as scapy

from clickos_lab.duties import duty
from clickos_lab.duties import forwarding

#: of sentinels
_NUMBERS = itertools.count()


def _snap(packet):
    """Return a packet in SNAP."""
    code = 0x86dd if scapy.IPv6 in packet else 0x0800
    return scapy.LLC(dsap=0xaa, ssap=0xaa, ctrl=3) / scapy.SNAP(
        OUI=0, code=code) / packet


#: What may be between the Ethernet addresses and an IPv4 packet.
_DISGUISES = {
    'plain': lambda packet: packet,
    'priority tag': lambda packet: scapy.Dot1Q(prio=3, vlan=0) / packet,
    'VLAN tag': lambda packet: scapy.Dot1Q(vlan=7) / packet,
    'two tags': lambda packet: scapy.Dot1AD(vlan=7) / scapy.Dot1Q(
        vlan=8) / packet,
    'two service tags': lambda packet: scapy.Dot1AD(vlan=7) / scapy.Dot1AD(
        vlan=8) / packet,
    # a station removes all of them
    'three priority tags': lambda packet: scapy.Dot1Q(vlan=0) / scapy.Dot1Q(
        vlan=0) / scapy.Dot1Q(vlan=0) / packet,
    'SNAP': _snap}
_CLIENTS = 10


def _judged(name):
    """Return what a VNF does not pass, without its IP header."""
    return {
        'ips': scapy.TCP(dport=80, flags='PA')
        / scapy.Raw(b'GET /etc/passwd'),
        'dns-filter': scapy.UDP(sport=999, dport=53)
        / scapy.DNS(qd=scapy.DNSQR(qname='www.blocked.invalid'))}[name]


def _four(source='10.9.1.50'):
    return scapy.IP(src=source, dst='10.9.1.60')


def _six(source='2001:db8:1::50'):
    return scapy.IPv6(src=source, dst='2001:db8:1::60')


def _frames(place, packet):
    """Return a packet in each disguise, by its name."""
    made = {}
    for name, wrap in _DISGUISES.items():
        head = scapy.Ether(src=place.left.mac, dst=place.right.mac)
        if name == 'SNAP':
            head = scapy.Dot3(src=place.left.mac, dst=place.right.mac)
        made[name] = head / wrap(packet)
    return made


def _sentinel(place):
    """Send a frame that passes, and no other is alike; wait until it comes."""
    words = f'sentinel {next(_NUMBERS)}.'.encode()
    place.left.send(scapy.Ether(src=place.left.mac, dst=place.right.mac)
                    / scapy.IP(src='10.9.1.50', dst='10.9.1.60')
                    / scapy.UDP(sport=1, dport=2) / scapy.Raw(words))
    place.right.expect(lambda f: words in bytes(f), 'sentinel')


@duty.duty('judges IPv4 behind tags and in SNAP',
           'IEEE 802.1Q, RFC 1042', ('dns-filter', 'ips'),
           in_guest=False)
def judges(case, place):
    _judges(case, place, _four() / _judged(place.name))


@duty.duty('judges IPv6 behind tags and in SNAP',
           'IEEE 802.1Q, RFC 2464', ('dns-filter', 'ips'), in_guest=False)
def judges6(case, place):
    _judges(case, place, _six() / _judged(place.name))


@duty.duty('judges behind extension headers', 'RFC 8200, 4',
           ('dns-filter', 'ips'))
def judges_behind(case, place):
    for headers in (scapy.IPv6ExtHdrHopByHop(), scapy.IPv6ExtHdrDestOpt(),
                    scapy.IPv6ExtHdrHopByHop() / scapy.IPv6ExtHdrRouting()
                    / scapy.IPv6ExtHdrFragment(m=1),
                    _many(20)):
        packet = _six() / headers / _judged(place.name)
        since = place.right.mark()
        place.left.send(scapy.Ether(src=place.left.mac, dst=place.right.mac)
                        / packet)
        _sentinel(place)
        secret = bytes(packet)[-12:]
        case.assertEqual([], place.right.found(
            lambda f, secret=secret: secret in bytes(f), since))


def _many(count):
    """Return many extension headers."""
    made = scapy.IPv6ExtHdrDestOpt()
    for _ in range(count - 1):
        made /= scapy.IPv6ExtHdrDestOpt()
    return made


def _judges(case, place, packet):
    for name, frame in _frames(place, packet).items():
        since = place.right.mark()
        place.left.send(frame)
        _sentinel(place)
        secret = bytes(packet.payload.payload)[-12:]
        case.assertEqual([], place.right.found(
            lambda f: secret in bytes(f), since), name)


@duty.duty('limits attempts behind tags and in SNAP', 'IEEE 802.1Q, RFC 1042',
           ('syn-guard',),
           in_guest=False)
def limits(case, place):
    _limits(case, place, lambda number: _four(f'10.9.1.{80 + number}'))


@duty.duty('limits attempts of IPv6 networks', 'RFC 8200',
           ('syn-guard',), in_guest=False)
def limits6(case, place):
    _limits(case, place, lambda number: _six(f'2001:db8:{80 + number}::1'))


def _limits(case, place, head):
    most = place.vnf.scenario.SOURCE_ATTEMPTS
    for number, name in enumerate(_DISGUISES):
        packet = head(number) / scapy.TCP(sport=9, dport=80, flags='S',
                                          seq=number)
        frame = bytes(_frames(place, packet)[name])
        since = place.right.mark()
        for _ in range(3 * most):
            place.left.send(frame)
        _sentinel(place)
        passed = place.right.found(lambda f: bytes(f)[:40] == frame[:40],
                                   since)
        case.assertLess(len(passed), 2 * most, name)


def _first_fragments(place, packet):
    """Send a packet in the smallest fragments; return the first at right."""
    since = place.right.mark()
    for part in scapy.fragment(packet, 8):
        place.left.send(scapy.Ether(src=place.left.mac,
                                    dst=place.right.mac) / part)
    _sentinel(place)
    return place.right.found(
        lambda f: (p := f.getlayer(scapy.IP)) and p.flags.MF and not p.frag
        and p.summary(), since)


@duty.duty('passes no question in fragments', 'RFC 1858', ('dns-filter',))
def questions_in_fragments(case, place):
    case.assertEqual([], _first_fragments(
        place, _four() / _judged('dns-filter')))


@duty.duty('passes no attempt in fragments', 'RFC 1858', ('syn-guard',))
def attempts_in_fragments(case, place):
    packet = scapy.IP(src='10.9.1.79', dst='10.9.1.60') / scapy.TCP(
        sport=9, dport=80, flags='S')
    case.assertEqual([], _first_fragments(place, packet))


@duty.duty('blocks names in any case', 'RFC 4343', ('dns-filter',))
def any_case(case, place):
    for name in ('www.BLOCKED.invalid', 'Blocked.Invalid', 'bLoCkEd.iNvAlId'):
        since = place.right.mark()
        place.left.send(
            scapy.Ether(src=place.left.mac, dst=place.right.mac)
            / scapy.IP(src='10.9.1.50', dst='10.9.1.60')
            / scapy.UDP(sport=999, dport=53)
            / scapy.DNS(qd=scapy.DNSQR(qname=name)))
        _sentinel(place)
        case.assertEqual([], place.right.found(
            lambda f: b'locked' in bytes(f).lower(), since), name)


@duty.duty('ten clients that boot together', 'RFC 2131, 4.1', ('dhcp-relay',))
def bursts(_case, place):
    since = place.right.mark()
    macs = [bytes([2, 0, 0, 0, 9, number]) for number in range(_CLIENTS)]
    for kind in ('discover', 'request'):
        for number, mac in enumerate(macs):
            place.left.send(
                scapy.Ether(src=mac, dst='ff:ff:ff:ff:ff:ff')
                / scapy.IP(src=duty.NO_ADDRESS, dst='255.255.255.255')
                / scapy.UDP(sport=68, dport=67)
                / scapy.BOOTP(chaddr=mac, xid=number)
                / scapy.DHCP(options=[('message-type', kind), 'end']))

    def wanted(_frame):
        found = place.right.found(
            lambda f: scapy.DHCP in f and (
                f[scapy.BOOTP].xid, f[scapy.DHCP].options[0][1]), since)
        return len(set(found)) == 2 * _CLIENTS
    place.right.expect(wanted, 'the requests of all clients', since)


def _asks(place, options=(), **fields):
    """Send a request of a client."""
    mac = bytes.fromhex('020000000977')
    place.left.send(
        scapy.Ether(src=mac, dst='ff:ff:ff:ff:ff:ff')
        / scapy.IP(src=duty.NO_ADDRESS, dst='255.255.255.255')
        / scapy.UDP(sport=68, dport=67)
        / scapy.BOOTP(chaddr=mac, **fields)
        / scapy.DHCP(options=[('message-type', 'discover'), *options, 'end']))


def _relayed(xid):
    return lambda f: scapy.DHCP in f and f[scapy.BOOTP].xid == xid and f


def _option(frame):
    """Return the option of relay agents in a message, None without one."""
    found = [option[1] for option in frame[scapy.DHCP].options
             if option[0] == 'relay_agent_information']
    return found[0] if found else None


@duty.duty('several servers get each request', 'RFC 1542, 4.1.1',
           ('dhcp-relay',))
def several_servers(_case, place):
    second = place.right.ips[1]
    first = place.vnf.values['server']
    with _Written(place, 'relay.more', second):
        since = place.right.mark()
        _asks(place, xid=901)
        for server in (first, second):
            place.right.expect(
                lambda f, server=server: _relayed(901)(f)
                and f[scapy.IP].dst == server, f'request to {server}', since)


@duty.duty('adds and removes the option of relay agents',
           'RFC 3046, 2.1, 2.2', ('dhcp-relay',))
def agent_option(case, place):
    with _Written(place, 'relay.circuit', 'port 7'), \
            _Written(place, 'relay.remote', 'host-a'):
        since = place.right.mark()
        _asks(place, xid=902)
        asked = place.right.expect(_relayed(902), 'request', since)
        case.assertEqual(b'\x01\x06port 7\x02\x06host-a',
                         bytes(_option(asked)))
        case.assertEqual(1, asked[scapy.BOOTP].hops)
        since = place.left.mark()
        message = asked[scapy.BOOTP].copy()
        message.op = 2
        place.right.send_ip(
            scapy.IP(src=place.vnf.values['server'], dst=place.left_ip)
            / scapy.UDP(sport=67, dport=67) / message, place.right_mac)
        got = place.left.expect(_relayed(902), 'answer', since)
    case.assertIsNone(_option(got))


@duty.duty('drops forged options and strangers', 'RFC 3046, 2.1',
           ('dhcp-relay',))
def strangers(case, place):
    since, back = place.right.mark(), place.left.mark()
    _asks(place, [('relay_agent_information', b'\x01\x01x')], xid=903)
    _asks(place, xid=904, giaddr='10.9.1.99')
    _asks(place, xid=905, hops=16)
    message = scapy.BOOTP(op=2, xid=906, giaddr=place.left_ip) \
        / scapy.DHCP(options=[('message-type', 'offer'), 'end'])
    place.right.send_ip(scapy.IP(src='10.9.2.99', dst=place.left_ip)
                        / scapy.UDP(sport=67, dport=67) / message,
                        place.right_mac)
    _asks(place, xid=907)
    place.right.expect(_relayed(907), 'request', since)
    for xid in (903, 904, 905):
        case.assertEqual([], place.right.found(_relayed(xid), since))
    forwarding.ping(place, place.right, place.right_mac, place.right_ip)
    case.assertEqual([], place.left.found(_relayed(906), back))


class _Written:
    """Another value of a handler for a while."""

    def __init__(self, place, name, value):
        self._control, self._name = place.vnf.control, name
        self._value = value

    def __enter__(self):
        self._before = self._control.read(self._name)
        self._control.write(self._name, self._value)

    def __exit__(self, *_error):
        self._control.write(self._name, self._before)


@duty.duty('the switch can take the rules', 'ADR 0083',
           ('firewall', 'stateful-firewall'))
def offloads(case, place):
    place.vnf.control.write('fw.config', 'deny udp dst port 9, allow all')
    place.vnf.control.write('fw.offload', 'true')
    state = place.vnf.control.read('fw.offload_state')
    case.assertNotIn('no device', state)
    place.vnf.control.write('fw.offload', 'false')
    place.vnf.control.write('fw.config', 'allow all')


#: Codepoints of IPv6 traffic and the class that they choose.
_CLASSES = {'expedited': 46 << 2, 'standard': 0, 'lower': 8 << 2}


@duty.duty('classes of IPv6 traffic', 'RFC 2474, 3', ('shaper',))
def classes(case, place):
    for name, traffic_class in _CLASSES.items():
        words = f'class {name}'.encode()
        packet = _six() / scapy.UDP(sport=1, dport=2) / scapy.Raw(words)
        packet.tc = traffic_class
        before = _used(place, name)
        since = place.right.mark()
        place.left.send(scapy.Ether(src=place.left.mac, dst=place.right.mac)
                        / packet)
        place.right.expect(lambda f, w=words: w in bytes(f), name, since)
        case.assertEqual(before + 1, _used(place, name), name)


def _used(place, name):
    """Return the queues of a class that have had a frame."""
    return sum(place.vnf.count(f'right_classes/{name}/q{n}.highwater_length')
               > 0 for n in range(8))

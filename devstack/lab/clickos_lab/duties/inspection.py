# SPDX-License-Identifier: Apache-2.0
"""Duties of functions that judge packets, and of the DHCP relay."""

from scapy import all as scapy

from clickos_lab.duties import duty
from clickos_lab.duties import place as places


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
        head = scapy.Ether(src=place.left.mac, dst=places.RIGHT_MAC)
        if name == 'SNAP':
            head = scapy.Dot3(src=place.left.mac, dst=places.RIGHT_MAC)
        made[name] = head / wrap(packet)
    return made


def _sentinel(place, number):
    """Send a frame that passes; wait until it comes."""
    words = f'sentinel {number}'.encode()
    place.left.send(scapy.Ether(src=place.left.mac, dst=places.RIGHT_MAC)
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
        place.left.send(scapy.Ether(src=place.left.mac, dst=places.RIGHT_MAC)
                        / packet)
        _sentinel(place, 30)
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
    for number, (name, frame) in enumerate(_frames(place, packet).items()):
        since = place.right.mark()
        place.left.send(frame)
        _sentinel(place, number)
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
        _sentinel(place, number)
        passed = place.right.found(lambda f: bytes(f)[:40] == frame[:40],
                                   since)
        case.assertLess(len(passed), 2 * most, name)


def _first_fragments(place, packet, number):
    """Send a packet in the smallest fragments; return the first at right."""
    since = place.right.mark()
    for part in scapy.fragment(packet, 8):
        place.left.send(scapy.Ether(src=place.left.mac,
                                    dst=places.RIGHT_MAC) / part)
    _sentinel(place, number)
    return place.right.found(
        lambda f: (p := f.getlayer(scapy.IP)) and p.flags.MF and not p.frag
        and p.summary(), since)


@duty.duty('passes no question in fragments', 'RFC 1858', ('dns-filter',))
def questions_in_fragments(case, place):
    case.assertEqual([], _first_fragments(
        place, _four() / _judged('dns-filter'), 30))


@duty.duty('passes no attempt in fragments', 'RFC 1858', ('syn-guard',))
def attempts_in_fragments(case, place):
    packet = scapy.IP(src='10.9.1.79', dst='10.9.1.60') / scapy.TCP(
        sport=9, dport=80, flags='S')
    case.assertEqual([], _first_fragments(place, packet, 31))


@duty.duty('blocks names in any case', 'RFC 4343', ('dns-filter',))
def any_case(case, place):
    for number, name in enumerate(
            ('www.BLOCKED.invalid', 'Blocked.Invalid', 'bLoCkEd.iNvAlId')):
        since = place.right.mark()
        place.left.send(
            scapy.Ether(src=place.left.mac, dst=places.RIGHT_MAC)
            / scapy.IP(src='10.9.1.50', dst='10.9.1.60')
            / scapy.UDP(sport=999, dport=53)
            / scapy.DNS(qd=scapy.DNSQR(qname=name)))
        _sentinel(place, 10 + number)
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
        place.left.send(scapy.Ether(src=place.left.mac, dst=places.RIGHT_MAC)
                        / packet)
        place.right.expect(lambda f, w=words: w in bytes(f), name, since)
        case.assertEqual(before + 1, _used(place, name), name)


def _used(place, name):
    """Return the queues of a class that have had a frame."""
    return sum(place.vnf.count(f'right_classes/{name}/q{n}.highwater_length')
               > 0 for n in range(8))

# SPDX-License-Identifier: Apache-2.0
"""Duties towards neighbors: ARP."""

from scapy import all as scapy

from clickos_lab.duties import duty
from clickos_lab.duties import forwarding
from clickos_lab.duties import place as places

_BROADCAST = 'ff:ff:ff:ff:ff:ff'


def _is_arp(op, **fields):
    """Return a condition: an ARP frame with these fields."""
    def wanted(frame):
        arp = frame.getlayer(scapy.ARP)
        return arp and arp.op == op and all(
            getattr(arp, name) == value for name, value in fields.items())
    return wanted


def _own(place):
    """Return all own addresses at right but the vif's."""
    return {'nat': [places.PUBLIC], 'cgn': [places.PUBLIC],
            'bras': [places.SUBSCRIBER]}.get(place.name, [])


@duty.duty('answers ARP probes', 'RFC 5227, 2.4', duty.ROUTED)
def answers_probes(_case, place):
    for station, mac, ip in place.sides():
        for address in (ip, *(_own(place) if station is place.right else ())):
            since = station.mark()
            station.send(scapy.Ether(src=station.mac, dst=_BROADCAST)
                         / scapy.ARP(op=1, hwsrc=station.mac,
                                     psrc=duty.NO_ADDRESS, pdst=address))
            station.expect(_is_arp(2, psrc=address, hwsrc=mac),
                           f'answer for {address}', since)


@duty.duty('announces its addresses', 'RFC 5227, 2.3',
           (*duty.ROUTED, 'mirror'))
def announces(_case, place):
    sides = place.sides() if place.name != 'mirror' else [
        (place.left, place.left_mac, place.left_ip)]
    for station, mac, ip in sides:
        more = _own(place) if station is place.right else ()
        for address in (ip, *more):
            station.expect(_is_arp(1, psrc=address, pdst=address, hwsrc=mac),
                           f'announcement of {address}')


@duty.duty('learns from a gratuitous request', 'RFC 826', duty.THROUGH)
def learns(case, place):
    place.open()
    before, mac = place.right.mac, '02:00:00:00:0b:99'
    place.right.mac = mac
    try:
        place.right.send(scapy.Ether(src=mac, dst=_BROADCAST) / scapy.ARP(
            op=1, hwsrc=mac, psrc=place.right.ip, pdst=place.right.ip))
        # behind the request on this link
        forwarding.ping(place, place.right, place.right_mac, place.right_ip)
        since = place.right.mark()
        place.send(place.packet(b'moved'))
        wanted = place.passed(b'moved')
        frame = place.right.expect(lambda f: wanted(f) and f, 'at right',
                                   since)
        case.assertEqual(mac, frame.dst)
    finally:
        place.right.mac = before
        place.right.send(scapy.Ether(src=before, dst=_BROADCAST)
                         / scapy.ARP(op=1, hwsrc=before,
                                     psrc=place.right.ip,
                                     pdst=place.right.ip))


@duty.duty('learns from a request for its address', 'RFC 826', duty.THROUGH)
def learns_from_question(_case, place):
    answer = place.open(sport=5001)
    mac = '02:00:00:00:0a:99'
    since = place.left.mark()
    place.left.send(scapy.Ether(src=mac, dst=_BROADCAST) / scapy.ARP(
        op=1, hwsrc=mac, psrc=places.LEFT_IP, pdst=place.left_ip))
    place.back(answer / scapy.Raw(b'learned'))
    place.left.expect(
        lambda f: f.dst == mac and scapy.UDP in f
        and bytes(f[scapy.UDP].payload) == b'learned', 'answer', since)
    place.left.send(scapy.Ether(src=place.left.mac, dst=_BROADCAST)
                    / scapy.ARP(op=1, hwsrc=place.left.mac,
                                psrc=places.LEFT_IP, pdst=place.left_ip))

# SPDX-License-Identifier: Apache-2.0
"""Frames of a hostile guest, made by scapy and then mutated.

``frames.py SEED COUNT`` prints COUNT lines: the port that sends the frame,
``pass`` or ``drop`` as ``judge.py`` says, the family, and the frame in
hexadecimal. The families take turns. A seed gives the same frames on every
machine: scapy must fill no field from the clock or by asking the network.

Port ``plain`` has MAC address 02:00:00:00:00:01 with 10.7.0.1 and
2001:db8::1. Port ``tagged`` has the same addresses, a second pair, and VLAN
tags. Port ``open`` has no port security.
"""

import ipaddress
import logging
import os
import random
import struct
import sys

import judge

logging.getLogger('scapy').setLevel(logging.ERROR)

from scapy import all as scapy  # noqa: E402
from scapy.contrib import igmp  # noqa: E402
from scapy.contrib import lldp  # noqa: E402
from scapy.contrib import mac_control  # noqa: E402
from scapy.contrib import mpls  # noqa: E402
from scapy.contrib import ospf  # noqa: E402

OWN, VICTIM, OTHER, PAIR = (f'02:00:00:00:00:0{n}' for n in (1, 2, 3, 4))
OWN4, VICTIM4, OTHER4, PAIR4 = '10.7.0.1', '10.7.0.2', '10.7.0.3', '10.7.9.4'
OWN6, VICTIM6, OTHER6 = '2001:db8::1', '2001:db8::2', '2001:db8::3'
OWN_LOCAL, OTHER_LOCAL = 'fe80::ff:fe00:1', 'fe80::ff:fe00:3'
PAIR6 = '2001:db8:9::4'
ALL6 = 'ff02::1'
_MAXIMUM = 1514
#: Linux drops a shorter frame with a tag before a socket sees it.
_MINIMUM = 20
#: mutated copies of one packet of scapy
_MUTANTS = 12


def _network(text):
    return ipaddress.ip_network(text)


_OWNS = tuple((bytes.fromhex(OWN.replace(':', '')), _network(address))
              for address in (OWN4, OWN6))
_PAIRS = tuple((bytes.fromhex(PAIR.replace(':', '')), _network(network))
               for network in ('10.7.9.0/24', '2001:db8:9::/64'))
PORTS = {'plain': judge.Port(_OWNS),
         'tagged': judge.Port(_OWNS + _PAIRS, tags=True),
         'open': judge.Port(secured=False, others=frozenset(
             [bytes.fromhex('020000000002')]))}
#: frames of each port, by family
_SHARES = {'tags': (1, 8, 1)}
_USUAL = (6, 3, 1)


class Maker:
    """Make packets of each family from a seed."""

    def __init__(self, seed):
        """Begin with a seed."""
        self.chance = random.Random(seed)
        random.seed(seed)

    def pick(self, *values):
        """Return one of the values."""
        return self.chance.choice(values)

    def often(self, usual, *others):
        """Return the usual value in seven of eight cases."""
        return usual if self.chance.random() < .875 else self.pick(*others)

    def data(self):
        """Return a few random bytes."""
        return self.chance.randbytes(self.pick(0, 1, 8, 40, 300))

    # Parts that all families share.

    def ether(self, **fields):
        """Return an Ethernet header."""
        target = self.often(VICTIM, 'ff:ff:ff:ff:ff:ff', '33:33:00:00:00:01',
                            '01:00:5e:00:00:01')
        return scapy.Ether(dst=target, src=self.often(OWN, OTHER, PAIR),
                           **fields)

    def ip4(self, **fields):
        """Return an IPv4 header."""
        source = self.often(OWN4, OTHER4, PAIR4, '0.0.0.0')
        target = self.pick(VICTIM4, '255.255.255.255', '224.0.0.1')
        return scapy.IP(src=source, dst=target, **fields)

    def ip6(self, **fields):
        """Return an IPv6 header."""
        source = self.often(OWN6, OWN_LOCAL, OTHER6, OTHER_LOCAL, PAIR6, '::')
        fields.setdefault('hlim', self.often(255, 64))
        return scapy.IPv6(src=source, dst=self.pick(VICTIM6, ALL6), **fields)

    def link_option(self):
        """Return options of neighbor discovery."""
        mac = self.often(OWN, OTHER, PAIR)
        return self.pick(
            scapy.ICMPv6NDOptSrcLLAddr(lladdr=mac),
            scapy.ICMPv6NDOptDstLLAddr(lladdr=mac),
            scapy.ICMPv6NDOptMTU(mtu=1280)
            / scapy.ICMPv6NDOptSrcLLAddr(lladdr=mac),
            scapy.Raw(b''))

    def advertisement(self):
        """Return a router advertisement."""
        return scapy.ICMPv6ND_RA() / scapy.ICMPv6NDOptPrefixInfo(
            prefix='2001:db8:bad::', prefixlen=64) / self.link_option()

    def claim6(self):
        """Return a message of ICMPv6 or DHCPv6."""
        asked = self.often(OWN6, OWN_LOCAL, OTHER6, VICTIM6, PAIR6)
        return self.pick(
            self.advertisement(),
            scapy.ICMPv6ND_NA(tgt=asked, R=0) / self.link_option(),
            scapy.ICMPv6ND_NS(tgt=asked) / self.link_option(),
            scapy.ICMPv6EchoRequest(data=self.data()), self.dhcp6_message())

    def dhcp6_message(self):
        """Return a datagram of DHCPv6."""
        kind = self.pick(scapy.DHCP6_Solicit, scapy.DHCP6_Reply,
                         scapy.DHCP6_Advertise)
        ports = self.pick((546, 547), (547, 546), (9, 546), (9, 9))
        return scapy.UDP(sport=ports[0], dport=ports[1]) / kind() \
            / scapy.DHCP6OptDNSServers(dnsservers=[OWN6])

    def claim4(self):
        """Return a message of ICMP, IGMP, DHCP or TCP."""
        return self.pick(self.icmp_message, self.dhcp_message,
                         self.igmp_message, self.tcp_message)()

    def icmp_message(self):
        """Return a message of ICMP."""
        return scapy.ICMP(type=self.pick(0, 3, 5, 8, 9, 10, 13, 17, 18),
                          gw=OWN4, ts_ori=0, ts_rx=0, ts_tx=0) / self.data()

    def igmp_message(self):
        """Return a message of IGMP."""
        message = igmp.IGMP(type=0x16, gaddr='224.0.0.5')
        message.type = self.pick(0x11, 0x12, 0x14, 0x16, 0x17, 0x22)
        return message

    def dhcp_message(self):
        """Return a datagram of DHCP."""
        ports = self.pick((68, 67), (68, 67), (67, 68), (9, 68))
        return scapy.UDP(sport=ports[0], dport=ports[1]) \
            / scapy.BOOTP(op=self.pick(1, 2)) / scapy.DHCP(options=[
                ('message-type', self.pick('discover', 'offer', 'ack')),
                ('router', OWN4), 'end'])

    def tcp_message(self):
        """Return a segment of TCP."""
        return scapy.TCP(sport=9, dport=9, flags=self.pick('S', 'A', 'R')) \
            / self.data()

    # The families.

    def arp(self):
        """Return an ARP message."""
        return self.ether() / scapy.ARP(
            op=self.pick(1, 2, 2, 3, 8), hwsrc=self.often(OWN, OTHER),
            psrc=self.often(OWN4, OTHER4, '0.0.0.0'),
            pdst=self.pick(OWN4, OTHER4, VICTIM4))

    def icmp(self):
        """Return a packet of ICMP."""
        return self.ether() / self.ip4() / self.icmp_message()

    def igmp(self):
        """Return a packet of IGMP."""
        return self.ether() / self.ip4() / self.igmp_message()

    def dhcp(self):
        """Return a packet of DHCP, from no address at times."""
        packet = self.ether() / self.ip4() / self.dhcp_message()
        if self.chance.random() < .5:
            packet[scapy.IP].src = '0.0.0.0'
        return packet

    def udp(self):
        """Return a packet of UDP or TCP."""
        ports = self.pick((9, 9), (5353, 5353), (9, 68), (1985, 1985),
                          (520, 520))
        datagram = scapy.UDP(sport=ports[0], dport=ports[1]) / self.data()
        return self.ether() / self.ip4() / self.pick(
            datagram, self.tcp_message())

    def options4(self):
        """Return an IPv4 packet with options."""
        option = self.pick(
            scapy.IPOption_RR(routers=[OTHER4]), scapy.IPOption_NOP(),
            scapy.IPOption_LSRR(routers=[OTHER4]), scapy.IPOption_EOL(),
            scapy.IPOption_SSRR(routers=[OTHER4]),
            scapy.IPOption_Router_Alert())
        return self.ether() / self.ip4(options=[option]) / self.claim4()

    def fragments4(self):
        """Return a fragment of an IPv4 packet."""
        packet = self.ether() / self.ip4() / self.claim4() / (b'x' * 90)
        return self.pick(*scapy.fragment(packet, self.pick(8, 16, 24, 64)))

    def ah4(self):
        """Return an IPv4 packet after AH."""
        inner = self.claim4()
        header = self.auth({'ICMP': 1, 'IGMP': 2, 'UDP': 17, 'TCP': 6}.get(
            inner.name, 2))
        return self.ether() / self.ip4(proto=51) / header / bytes(inner)

    def auth(self, kind):
        """Return an authentication header."""
        size = self.pick(0, 4, 12)
        return scapy.AH(nh=kind, icv=bytes(size), payloadlen=1 + size // 4)

    def tunnels(self):
        """Return a packet inside of another."""
        four = scapy.IP(src=OTHER4, dst=VICTIM4) / self.claim4()
        six = scapy.IPv6(src=OTHER_LOCAL, dst=ALL6) / self.advertisement()
        outer = self.pick(self.ip4, self.ip6)()
        return self.ether() / outer / self.pick(
            four, six, scapy.GRE() / four, scapy.GRE() / six,
            scapy.UDP(sport=9, dport=4789) / scapy.VXLAN(vni=1)
            / scapy.Ether(dst=VICTIM, src=OTHER) / four)

    def routing(self):
        """Return what routers say to each other."""
        return self.pick(
            self.ether() / self.ip4() / self.pick(
                scapy.VRRP(vrid=1, addrlist=[OWN4]), ospf.OSPF_Hdr(),
                scapy.UDP(sport=520, dport=520) / scapy.RIP(cmd=2)
                / scapy.RIPEntry(addr=OWN4),
                scapy.UDP(sport=1985, dport=1985) / scapy.HSRP()),
            self.ether(type=0x86dd) / self.ip6(nh=89) / ospf.OSPFv3_Hdr())

    def udp6(self):
        """Return a packet of UDP, DHCPv6 or TCP over IPv6."""
        return self.ether() / self.ip6() / self.pick(
            self.dhcp6_message(), self.tcp_message(),
            scapy.UDP(sport=9, dport=9) / self.data())

    def discovery(self):
        """Return a neighbor or router solicitation or advertisement."""
        asked = self.often(OWN6, OWN_LOCAL, OTHER6, VICTIM6)
        return self.ether() / self.ip6() / self.pick(
            scapy.ICMPv6ND_NS(tgt=asked) / self.link_option(),
            scapy.ICMPv6ND_NA(tgt=asked, R=0, O=1) / self.link_option(),
            scapy.ICMPv6ND_RS() / self.link_option(), self.advertisement(),
            scapy.ICMPv6ND_Redirect(tgt=OWN6, dst=OTHER6)
            / self.link_option())

    def icmp6(self):
        """Return another message of ICMPv6."""
        return self.ether() / self.ip6() / self.pick(
            scapy.ICMPv6EchoRequest(data=self.data()),
            scapy.ICMPv6EchoReply(), scapy.ICMPv6PacketTooBig(),
            scapy.ICMPv6DestUnreach() / self.data(),
            scapy.ICMPv6MLQuery(), scapy.ICMPv6MLReport(),
            scapy.ICMPv6MLReport2(), scapy.ICMPv6MLDone(),
            scapy.ICMPv6MLQuery2(), scapy.ICMPv6NIQueryIPv6(),
            scapy.ICMPv6NIReplyName(), scapy.ICMPv6ND_INDAdv(),
            scapy.ICMPv6MRD_Advertisement())

    def extensions(self):
        """Return an IPv6 packet after extension headers."""
        count = self.pick(1, 1, 2, 3, 8, 9)
        of_options = [scapy.IPv6ExtHdrDestOpt() for _ in range(count)]
        mixed = [self.extension() for _ in range(count)]
        packet = self.ether() / self.ip6()
        for header in of_options if count > 3 else mixed:
            packet = packet / header
        return packet / self.claim6()

    def extension(self):
        """Return one extension header."""
        return self.pick(
            scapy.IPv6ExtHdrHopByHop(options=[scapy.RouterAlert()]),
            scapy.IPv6ExtHdrDestOpt(), scapy.IPv6ExtHdrDestOpt(),
            scapy.IPv6ExtHdrRouting(segleft=self.often(0, 1)),
            scapy.IPv6ExtHdrFragment(
                offset=self.often(0, 1, 3), m=self.pick(0, 1)))

    def fragments6(self):
        """Return a fragment of an IPv6 packet."""
        header = scapy.IPv6ExtHdrFragment(
            offset=self.often(0, 1, 2, 3, 8191), m=self.pick(0, 1), id=7)
        return self.ether() / self.ip6() / header / self.claim6()

    def ah6(self):
        """Return an IPv6 packet after AH, mobility or an experiment."""
        kind = self.often(51, 135, 139, 140, 253, 254)
        inner = self.claim6()
        number = 17 if inner.name == 'UDP' else 58
        header = bytes(self.auth(number)) if kind == 51 \
            else bytes((number, 0)) + bytes(6)
        return self.ether() / self.ip6(nh=kind) / header / bytes(inner)

    def tags(self):
        """Return a packet after VLAN tags."""
        whole = self.pick(self.arp, self.icmp, self.discovery, self.dhcp,
                          self.fragments6, self.lower)()
        packet = scapy.Ether(dst=whole.dst, src=whole.src)
        for _ in range(self.pick(1, 1, 1, 2, 3)):
            packet = packet / self.pick(scapy.Dot1Q, scapy.Dot1AD)(
                vlan=self.pick(0, 5), prio=self.pick(0, 7))
        if whole.haslayer(scapy.Dot3):
            return packet / bytes(whole)[12:]
        return packet / whole.payload

    def snap(self):
        """Return a packet after LLC and SNAP."""
        whole = self.pick(self.arp, self.icmp, self.discovery)()
        return scapy.Dot3(dst=whole.dst, src=whole.src) \
            / scapy.LLC(dsap=0xaa, ssap=0xaa, ctrl=3) \
            / scapy.SNAP(OUI=self.pick(0, 0xf8), code=whole.type) \
            / whole.payload

    def wrapped(self):
        """Return a packet after MPLS or PPPoE, or RARP."""
        inner = self.pick(self.ip4() / self.claim4(),
                          self.ip6() / self.claim6())
        protocol = 0x21 if inner.name == 'IP' else 0x57
        return self.pick(
            self.ether(type=0x8847) / mpls.MPLS(label=9, s=1) / inner,
            self.ether() / scapy.PPPoE(sessionid=1)
            / scapy.PPP(proto=protocol) / inner,
            self.ether() / scapy.PPPoED(),
            self.ether(type=0x8035) / scapy.ARP(
                op=4, hwsrc=OWN, psrc=OWN4, pdst=OTHER4))

    def lower(self):
        """Return what the two ends of a cable say to each other."""
        group = f'01:80:c2:00:00:{self.chance.randrange(32):02x}'
        return self.pick(
            scapy.Dot3(dst=group, src=OWN) / scapy.LLC(
                dsap=0x42, ssap=0x42, ctrl=3) / scapy.STP(),
            scapy.Ether(dst=self.pick(group, VICTIM), src=OWN)
            / lldp.LLDPDUChassisID(subtype=4, id=OWN)
            / lldp.LLDPDUPortID(subtype=5, id='x')
            / lldp.LLDPDUTimeToLive(ttl=20) / lldp.LLDPDUEndOfLLDPDU(),
            scapy.Ether(dst=self.pick(group, VICTIM), src=OWN)
            / mac_control.MACControlPause(pause_time=65535),
            scapy.Ether(dst=self.pick(group, VICTIM), src=OWN, type=0x8809)
            / self.data(),
            scapy.Ether(dst=group, src=OWN) / scapy.EAPOL(type=1))


FAMILIES = ('arp', 'icmp', 'igmp', 'dhcp', 'udp', 'options4', 'fragments4',
            'ah4', 'tunnels', 'routing', 'udp6', 'discovery', 'icmp6',
            'extensions', 'fragments6', 'ah6', 'tags', 'snap', 'wrapped',
            'lower')


class Mutator:
    """Change packets: their bytes behind the destination, and their end."""

    _BYTES = (0, 1, 2, 4, 6, 17, 43, 44, 51, 58, 60, 127, 128, 255)
    _TYPES = tuple(struct.pack('!H', kind) for kind in (
        0x0800, 0x0806, 0x86dd, 0x8100, 0x88a8, 0x9100, 0x8035, 0x8808,
        0x8809, 0x8847, 0x8864, 0x88cc, 0x888e, 0x22f0, 46, 68, 546))
    _PAIRS = tuple(tuple(pair) for pair in (
        (OWN, OTHER), (OWN, PAIR), (OWN4, OTHER4), (OWN4, PAIR4),
        (OWN6, OTHER6), (OWN6, PAIR6), (OWN6, '::'), (OWN_LOCAL, OTHER6),
        (OWN4, '0.0.0.0')))

    def __init__(self, chance):
        """Use a source of random numbers."""
        self.chance = chance
        self._swaps = [(_packed(a), _packed(b)) for a, b in self._PAIRS]
        self._ways = (self._byte, self._byte, self._type, self._bit,
                      self._swap, self._swap, self._cut, self._lengthen,
                      self._doubled)

    def mutant(self, frame):
        """Return a frame with one to three changes."""
        data = bytearray(frame)
        for _ in range(self.chance.choice((1, 1, 2, 3))):
            self.chance.choice(self._ways)(data)
        return bytes(data)

    def _at(self, data, last=110):
        return self.chance.randrange(6, max(7, min(len(data), last)))

    def _byte(self, data):
        data[self._at(data)] = self.chance.choice(self._BYTES)

    def _bit(self, data):
        data[self._at(data)] ^= 1 << self.chance.randrange(8)

    def _type(self, data):
        at = self._at(data)
        data[at:at + 2] = self.chance.choice(self._TYPES)

    def _swap(self, data):
        """Replace one address by another."""
        old, new = self.chance.sample(self.chance.choice(self._swaps), 2)
        at = data.find(old, 6)
        if at >= 0:
            data[at:at + len(old)] = new

    def _cut(self, data):
        del data[max(14, self._at(data, len(data))):]

    def _lengthen(self, data):
        data += self.chance.randbytes(self.chance.randrange(1, 40))

    def _doubled(self, data):
        """Repeat a few bytes, so that later headers move."""
        at = self._at(data, 60)
        data[at:at] = data[at:at + self.chance.choice((1, 2, 4, 8))]


def _packed(text):
    if text.count(':') == 5:
        return bytes.fromhex(text.replace(':', ''))
    return ipaddress.ip_address(text).packed


def frames(seed):
    """Yield (family, frame) without end; the families take turns."""
    maker = Maker(seed)
    mutator = Mutator(maker.chance)
    while True:
        for family in FAMILIES:
            frame = bytes(getattr(maker, family)())
            yield family, frame[:_MAXIMUM]
            for _ in range(_MUTANTS):
                yield family, mutator.mutant(frame)[:_MAXIMUM]


def judged(seed):
    """Yield (port, verdict, family, frame) without end."""
    chance = random.Random(seed)
    for family, frame in frames(seed):
        frame = frame.ljust(_MINIMUM, b'\0')
        port, = chance.choices(tuple(PORTS), _SHARES.get(family, _USUAL))
        passes = judge.judge(frame, PORTS[port])
        yield port, 'pass' if passes else 'drop', family, frame


def main(seed, count):
    """Print the frames of a seed."""
    made = judged(int(seed))
    for _ in range(int(count)):
        port, verdict, family, frame = next(made)
        print(port, verdict, family, frame.hex())


if __name__ == '__main__':
    os.umask(0o077)
    main(*sys.argv[1:])

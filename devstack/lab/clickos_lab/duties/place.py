# SPDX-License-Identifier: Apache-2.0
"""A VNF under test, a station at each vif, and how packets get through it."""

import contextlib
import dataclasses
import itertools

from scapy import all as scapy

from clickos_lab.duties import duty
from clickos_lab.duties import wire
from clickos_lab.vnf import rendering
from clickos_lab.vnf import testbed
from clickos_lab.vnf import xen_bench

LEFT_IP = '10.9.1.77'
OTHER_IP = '10.9.1.78'
RIGHT_IP = '10.9.2.77'
#: A host behind the gateway of left, which is OTHER_IP.
BEHIND_IP = '10.7.0.5'
LEFT_IP6, RIGHT_IP6 = '2001:db8:1::77', '2001:db8:2::77'
PUBLIC = '10.9.2.64'
#: Networks behind a tunnel, and an address there.
REMOTE, FAR_IP = '10.8.0.0/24', '10.8.0.5'
#: A subscriber of the BRAS without a session.
SUBSCRIBER = '10.9.2.97'
#: Beyond the MTU of a configuration, which is 1,500: a vif takes at most this.
LINK_MTU = 1900

#: Values of properties, where those of the scenario do not fit.
_PROPERTIES = {
    'firewall': {'rules': ['allow all']},
    'stateful-firewall': {'rules': ['allow all']},
    'dhcp-relay': {'server': RIGHT_IP},
    'nat': {'public': PUBLIC, 'ports': '20000-20399'},
    'load-balancer': {'service_port': 8080, 'health_port': 0,
                      'servers': [RIGHT_IP, RIGHT_IP6]},
    'gre-gateway': {'peer': RIGHT_IP, 'remote': REMOTE},
}


#: Two VNFs may run at once, and the switch knows stations of the one before.
_NUMBERS = itertools.count()


class _Values(testbed.VnfTestbed):
    """The values of properties that the duties need, and long links."""

    def __init__(self, name, more, *host):
        super().__init__(name, *host)
        self._prefix += f'-{next(_NUMBERS)}'
        self.values = _PROPERTIES.get(name) or rendering.wanted(
            self.scenario)
        self.values = {**self.values, **more}
        if name in duty.TRANSLATORS:
            self.interfaces[0] = dataclasses.replace(
                self.interfaces[0], gateway=OTHER_IP)

    def configuration(self):
        return rendering.configuration(self.vdu, self.interfaces,
                                       self.values)

    def _add_hosts(self, undo):
        super()._add_hosts(undo)
        for interface in self.interfaces:
            testbed.ip('-n', self.namespace(interface.cp), 'link', 'set',
                       'eth0', 'mtu', LINK_MTU)


class _Program(_Values):
    """A VNF in the program ``click``."""

    def _connect(self, undo):
        super()._connect(undo)
        for index in range(len(self.interfaces)):
            testbed.ip('-n', self.namespace('vnf'), 'link', 'set', str(index),
                       'mtu', LINK_MTU)


class _Guest(_Values, xen_bench.XenBench):
    """A VNF in a guest."""

    def _vif(self, interface):
        return {**super()._vif(interface), 'mtu': LINK_MTU}


class Place:
    """A running VNF with stations.

    :ivar left: a station at vif 0, :ivar other: a second one there
    :ivar right: a station at vif 1
    """

    def __init__(self, name, undo, more=(), host=None):
        self.name = name
        made = _Guest(name, dict(more), host) if host \
            else _Program(name, dict(more))
        self.vnf = undo.enter_context(made)
        self._undo = undo
        ips = [i.ip for i in self.vnf.interfaces]
        macs = [i.mac for i in self.vnf.interfaces]
        self.left_ip, self.right_ip = ips[0], ips[-1]
        self.left_mac, self.right_mac = macs[0], macs[-1]
        left, right = (self.vnf.interfaces[n].cp for n in (0, -1))
        mac = f'02:00:00:{next(_NUMBERS):02x}:{{}}'.format
        self.left = self.station(left, mac('0a:77'), LEFT_IP)
        self.other = self.station(left, mac('0a:78'), OTHER_IP)
        is_server = name == 'load-balancer'
        self.right = self.station(right, mac('0b:77'), RIGHT_IP, '10.9.2.78',
                                  *([RIGHT_IP6] if is_server else ()))
        if is_server:
            self.vnf.until(lambda: self._status().count(' up ') == 2,
                           'a server is down')
        if name in duty.TRANSPARENT:
            self.vnf.until(self._passes, 'passes no frame')

    def _status(self):
        return f'{self.vnf.control.read("pool.status")} '.replace('\n', ' ')

    def _passes(self):
        """Send a frame; return whether one of those sent so far came."""
        words = b'the links are up'
        self.left.send_ip(scapy.IP(src='10.9.1.50', dst='10.9.1.60')
                          / scapy.UDP(sport=1, dport=2) / scapy.Raw(words),
                          self.right.mac)
        return self.right.found(lambda f: words in bytes(f))

    def station(self, host, mac, *ips):
        """Return a further station at a host's link."""
        made = wire.Station(self.vnf.namespace(host), mac, *ips)
        self._undo.callback(made.close)
        return made

    def sides(self):
        """Return the station, Ethernet and IP address of each IPv4 vif."""
        left = (self.left, self.left_mac, self.left_ip)
        right = (self.right, self.right_mac, self.right_ip)
        if self.name in ('bras', 'tunnel-gateway', 'dhcp-relay'):
            return [right]
        return [left, right]

    def target(self):
        """Return the address and port that packets of left go to."""
        return {'load-balancer': (self.left_ip, 8080),
                'gre-gateway': (FAR_IP, 6000),
                'vpn-gateway': (FAR_IP, 6000)}.get(
                    self.name, (RIGHT_IP, 6000))

    def target6(self):
        """Return the same for IPv6."""
        if self.name == 'load-balancer':
            return self.vnf.interfaces[0].ip6, 8080
        return RIGHT_IP6, 6

    def packet(self, words=b'words', sport=5000, **ip):
        """Return a UDP packet of left that goes through the VNF."""
        address, port = self.target()
        ip.setdefault('dst', address)
        ip.setdefault('src', LEFT_IP)
        return scapy.IP(**ip) / scapy.UDP(sport=sport, dport=port) \
            / scapy.Raw(words)

    def arrived(self, frame):
        """Return the IP packet of left in a frame at right, if one is."""
        packet = frame.getlayer(scapy.IP)
        if packet is None or packet.src == self.right_ip \
                and self.name != 'gre-gateway':
            return None
        if self.name == 'gre-gateway':
            packet = packet.payload.payload if scapy.GRE in packet else None
        return packet

    def passed(self, words):
        """Return a condition: a whole UDP packet with these words."""
        def wanted(frame):
            packet = self.arrived(frame)
            udp = packet and packet.getlayer(scapy.UDP)
            return packet if udp and bytes(udp.payload) == words else None
        return wanted

    def send(self, packet, station=None):
        """Let a station of left send a packet to the VNF."""
        (station or self.left).send_ip(packet, self.left_mac)

    def through(self, packet, words, station=None):
        """Send a packet of left; return it as right gets it."""
        since = self.right.mark()
        self.send(packet, station)
        return self.right.expect(self.passed(words), f'{words} at right',
                                 since)

    def open(self, words=b'opens', station=None, **more):
        """Send a packet of left; return the answer that right would send."""
        found = self.through(self.packet(words, **more), words, station)
        udp = found[scapy.UDP]
        return scapy.IP(src=found.dst, dst=found.src) / scapy.UDP(
            sport=udp.dport, dport=udp.sport)

    def back(self, answer, **ip):
        """Let right send an answer of :meth:`open`, with other fields."""
        for name, value in ip.items():
            setattr(answer, name, value)
        if self.name == 'gre-gateway':
            answer = scapy.IP(src=RIGHT_IP, dst=self.right_ip) \
                / scapy.GRE() / answer
        self.right.send_ip(answer, self.right_mac)


@contextlib.contextmanager
def opened(name, host=None, **more):
    """Start a VNF and its stations; remove everything.

    :param host: of a guest; without one the program runs the VNF
    :param more: values of properties
    """
    with contextlib.ExitStack() as undo:
        yield Place(name, undo, more, host)

# SPDX-License-Identifier: Apache-2.0
"""Guests on the stock netback, with a Linux bridge and Open vSwitch."""

import json

from tests.xen import base
from tests.xen import guest

#: Answers ARP requests for its address and echo requests to it.
_ANSWERER = """
AddressInfo(me {address} {mac});
from :: FromDevice(0); to :: Queue -> ToDevice(0);
from -> kinds :: Classifier(12/0806 20/0001, 12/0800);
kinds[0] -> ARPResponder(me) -> to;
kinds[1] -> Strip(14) -> CheckIPHeader -> IPFilter(allow dst host me, deny all)
  -> ICMPPingResponder -> echoes :: Counter
  -> EtherEncap(0x0800, me, ff:ff:ff:ff:ff:ff) -> to;
"""
#: Passes everything on, both ways.
_WIRE = """
FromDevice(0) -> Queue(500) -> ToDevice(1);
FromDevice(1) -> Queue(500) -> ToDevice(0);
"""


def address_of(number):
    """Return the address at which a guest of a number answers."""
    return f'10.1.{number >> 8}.{number & 0xff}'


def mac_of(number):
    """Return the Ethernet address of a guest of a number."""
    return f'00:16:3e:01:{number >> 8:02x}:{number & 0xff:02x}'


def answers(number):
    """Return the configuration with which a guest of a number answers."""
    return _ANSWERER.format(address=address_of(number), mac=mac_of(number))


def answerer(dom0, name, kind, bridge, number):
    """Make a guest and the configuration with which it answers."""
    made = guest.Guest(dom0, name, kind,
                       f'vif = ["bridge={bridge},mac={mac_of(number)}"]')
    return made.create(watched=False), answers(number)


class NetbackTests:
    """The cases; below they run for both kinds of bridge and of guest."""

    bridge = kind = None

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.dom0.check(f'lab-net {cls.bridge} br0; lab-net {cls.bridge} br1; '
                       'lab-net endpoint br0 near 10.1.0.1/24; '
                       'lab-net endpoint br1 far 10.1.0.2/24')

    def _ping(self, address, source='near'):
        self.dom0.check(f'ip netns exec {source} ping -c 3 -i 0.2 '
                        f'-w 60 {address}', timeout_s=90)

    def test_ping(self):
        made, text = answerer(self.dom0, 'answer', self.kind, 'br0', 9)
        self.addCleanup(made.destroy)
        self.assertEqual(('Running', ''), made.install(text))
        self._ping('10.1.0.9')

    def test_a_guest_between_two_networks(self):
        made = guest.Guest(self.dom0, 'wire', self.kind, 'memory = 8\n'
                           'vif = ["bridge=br0", "bridge=br1"]').create()
        self.addCleanup(made.destroy)
        self.assertEqual(('Running', ''), made.install(_WIRE))
        self.assertGreater(int(made.get('memory')), 2048)
        self._ping('10.1.0.2')
        self.dom0.check(
            'ip netns exec far iperf3 -s -1 -D; until ip netns exec far '
            'netstat -ltn | grep -q ":5201 "; do sleep 0.1; done')
        text = self.dom0.check(
            'ip netns exec near iperf3 -c 10.1.0.2 -t 3 -J', timeout_s=60)
        rate = json.loads(text)['end']['sum_received']['bits_per_second']
        print(f'{self.bridge}, {self.kind}: TCP {rate / 1e6:.1f} Mb/s',
              flush=True)
        self.assertGreater(rate, 1e6)


class LinuxBridgeTest(NetbackTests, base.XenTest):
    bridge, kind = 'bridge', 'pv'


class OpenVswitchTest(NetbackTests, base.XenTest):
    bridge, kind = 'ovs', 'pvh'

# SPDX-License-Identifier: Apache-2.0
"""The main job on somebody else's cloud: no administrator, no host.

Two servers of the tenant make and count the packets that a firewall judges.
"""

import re

from tempest.lib.common.utils import data_utils
from tempest.lib import decorators

from clickos_tempest_plugin.common import csar
from clickos_tempest_plugin.common import tenant
from clickos_tempest_plugin.common import waiters
from clickos_tempest_plugin.tests import base
from clickos_tempest_plugin.tests.scenario import case

OPEN = ['allow icmp', 'allow udp', 'deny all']
NO_UDP = ['deny udp dst port 7', 'allow icmp', 'allow udp', 'deny all']
ALL_ANSWERED = re.compile(r'(\d+) packets transmitted, \1 received, ')
#: Pings and datagrams in the meantime, at least.
ENOUGH = 20
#: A machine with a gateway. Paths lead from "received" to "send".
MACHINE = '''
out :: Queue -> ToDevice(0);
send :: SetIPAddress({gateway}) -> arp :: ARPQuerier({ip}, {mac}) -> out;
FromDevice(0) -> type :: Classifier(12/0806 20/0001, 12/0806 20/0002, 12/0800);
type[0] -> ARPResponder({ip} {mac}) -> out;
type[1] -> [1]arp;
type[2] -> Strip(14) -> received :: CheckIPHeader;
'''
#: Sends datagrams, and pings while `ping.active` is true.
CLIENT = MACHINE + '''
RatedSource(DATA "hello", RATE 50) -> UDPIPEncap({ip}, 7, {peer}, 7) -> send;
received -> ping :: ICMPPingSource({ip}, {peer}, INTERVAL 0.02,
    ACTIVE false, VERBOSE false) -> send;
'''
#: Answers pings, and counts datagrams.
SERVER = MACHINE + '''
received -> kind :: IPClassifier(icmp type echo, udp dst port 7, -);
kind[0] -> ICMPPingResponder -> send;
kind[1] -> heard :: Counter -> Discard;
kind[2] -> Discard;
'''


class TenantTest(case.Rules, base.ClickOSTest):
    """One member of one project, with what clickos-api and Tacker tell."""

    credentials = ['primary']

    @classmethod
    def resource_setup(cls):
        super().resource_setup()
        cls.clickos = cls.tenant.clickos
        cls.vnf_id = cls.tenant.firewall(csar.firewall(), OPEN,
                                         cls.addClassResourceCleanup)
        cls.server_id = cls.tenant.server_id(cls.vnf_id)
        left, right = (cls.tenant.make_port(name,
                                            cls.addClassResourceCleanup)
                       for name in tenant.NETWORKS)
        cls.peer_id = cls.boot('right', SERVER, right, left)
        cls.client_id = cls.boot('left', CLIENT, left, right)

    @classmethod
    def boot(cls, network, text, port, peer):
        """Start a machine with the firewall as its gateway."""
        ip, peer_ip = (each['fixed_ips'][0]['ip_address']
                       for each in (port, peer))
        return cls.tenant.boot(
            data_utils.rand_name(network), [port], text.format(
                ip=ip, mac=port['mac_address'], peer=peer_ip,
                gateway=tenant.FIREWALL[network]),
            cls.addClassResourceCleanup)

    def heard(self):
        """Return how many datagrams came through the firewall."""
        return int(self.clickos.read_handler(self.peer_id, 'heard.count'))

    def sent(self):
        """Return how many pings the client sent."""
        return int(self.clickos.read_handler(self.client_id, 'ping.count'))

    def ping(self, active):
        """Let the client send pings or be silent."""
        self.clickos.write_handler(self.client_id, 'ping.active',
                                   str(active).lower())

    def more(self, read, what):
        """Wait until a counter has grown by ENOUGH."""
        before = read()
        waiters.until(read, lambda seen: seen >= before + ENOUGH, what)

    @decorators.attr(type=['smoke', 'slow'])
    @decorators.idempotent_id('4e8f1d7b-0c0e-4a7b-9f1e-0a7c5b0d2ea1')
    def test_a_rule_changes_between_two_servers(self):
        self.more(self.heard, 'datagrams pass')
        before = self.tenant.servers.show_server(self.server_id)['server']
        self.ping(True)
        self.more(self.sent, 'the client pings')
        self.assertEqual('accepted', self.update(NO_UDP)['verdict'])
        self.assertEqual(NO_UDP, self.rules())
        heard = self.heard()
        self.more(lambda: self.hits(NO_UDP[0]), 'datagrams are denied')
        self.assertEqual(heard, self.heard())
        self.more(self.sent, 'the client pings')
        self.ping(False)
        self.assertNoneLost()
        after = self.tenant.servers.show_server(self.server_id)['server']
        for unchanged in ('id', 'OS-SRV-USG:launched_at', 'status'):
            self.assertEqual(before[unchanged], after[unchanged])
        self.tenant.terminate(self.vnf_id)
        self.assertNothingLeft(self.vnf_id)

    def assertNoneLost(self):
        """Wait until each ping has its answer."""
        def summary():
            return self.clickos.read_handler(self.client_id, 'ping.summary')
        waiters.until(summary, ALL_ANSWERED.match, 'each ping has an answer')

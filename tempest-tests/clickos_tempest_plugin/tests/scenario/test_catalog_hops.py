# SPDX-License-Identifier: Apache-2.0
"""VNFs of the catalog that copy frames, each alone in a chain.

The classifier names the sender's port, so every packet of the sender enters,
whatever its addresses. A hop that is taken for a router would get its own
packets back.
"""

import json

from clickos_client import hop_tags
from tempest import config
from tempest.lib.common.utils import data_utils
from tempest.lib import decorators

from clickos_tempest_plugin.common import cli
from clickos_tempest_plugin.common import csar
from clickos_tempest_plugin.common import waiters
from clickos_tempest_plugin.tests.scenario import test_chains

CONF = config.CONF

#: Sends an echo request for each write to source.active, and counts answers.
SENDER = """
source :: RatedSource(DATA "0123456789012345", RATE 10, LIMIT 1, ACTIVE false)
  -> ICMPPingEncap({ip}, {peer_ip})
  -> EtherEncap(0x0800, {mac}, {peer_mac}) -> sent :: Counter
  -> Queue -> ToDevice(0);
FromDevice(0) -> from :: Classifier(6/{peer_hex} 12/0800, -);
from[0] -> heard :: Counter -> Discard;
from[1] -> Discard;
"""
#: Answers echo requests, and counts them.
RECEIVER = """
FromDevice(0) -> from :: Classifier(6/{peer_hex} 12/0800, -);
from[0] -> heard :: Counter -> Strip(14) -> CheckIPHeader
  -> ICMPPingResponder -> EtherEncap(0x0800, {mac}, {peer_mac})
  -> Queue -> ToDevice(0);
from[1] -> Discard;
"""


class OneHopCase(test_chains.ScaledHopCase):
    """A sender, a receiver, and a chain of one VNF between them."""

    #: of the catalog
    name: str

    @classmethod
    def skip_checks(cls):
        super().skip_checks()
        if not CONF.clickos.catalog_path:
            raise cls.skipException('[clickos] catalog_path is not set')

    def setUp(self):
        super().setUp()
        self.sfc = self.os_primary.sfc.SfcClient()
        self.ports = [self.tenant.make_port('left', self.addCleanup)
                      for _ in range(2)]
        self.sender, self.receiver = (
            self.boot(text, *ports) for text, ports in (
                (SENDER, self.ports), (RECEIVER, self.ports[::-1])))

    def boot(self, text, port, peer):
        """Start a guest that talks to the port of another one."""
        ip, peer_ip = (each['fixed_ips'][0]['ip_address']
                       for each in (port, peer))
        peer_mac = peer['mac_address']
        return self.tenant.boot(
            data_utils.rand_name('guest'), [port], text.format(
                ip=ip, mac=port['mac_address'], peer_ip=peer_ip,
                peer_mac=peer_mac, peer_hex=peer_mac.replace(':', '')),
            self.addCleanup)

    def make_chain_of(self, package):
        """Let Tacker deploy a package, and make its guest the only hop."""
        self.instantiate(package)
        flow = self.make('flow_classifier',
                         logical_source_port=self.ports[0]['id'])
        self.chain = self.make(
            'port_chain', port_pair_groups=[self.make_hop()],
            flow_classifiers=[flow], chain_parameters={'symmetric': True})
        self.assertHops(self.chain, 1)

    def send(self):
        """Send an echo request."""
        before = self.passed(self.sender, 'sent')
        self.tenant.clickos.write_handlers(self.sender, [
            ['source.reset', ''], ['source.active', 'true']])
        waiters.until(lambda: self.passed(self.sender, 'sent'),
                      lambda seen: seen == before + 1, 'one request is sent')

    def counters(self):
        """Return the counters of the chain's hop, as clickos-api has them."""
        (hop,) = self.tenant.clickos.show_chain(self.chain)['hops']
        return hop

    def shown(self):
        """Return the rows of chain stats, by hop."""
        done = cli.openstack(self.os_primary, 'clickos', 'chain', 'stats',
                             self.chain, '--interval', '0.1', '-f', 'json')
        self.assertEqual(0, done.returncode, done.stderr)
        return {row['Hop']: row for row in json.loads(done.stdout)}

    def check_passes(self):
        """As shipped, each packet passes the hop once."""
        self.make_chain_of(csar.of_catalog(self.name))
        for number in (1, 2):
            self.send()
            waiters.until(lambda: self.passed(self.sender, 'heard'),
                          lambda seen: seen == number, 'an answer arrives')
        # A packet of the first round that went in a circle would count.
        self.assertEqual(2, self.passed(self.receiver, 'heard'))
        self.assertEqual((4, 0), (self.counters()['packets'],
                                  self.counters()['looped']))
        self.assertEqual({0}, {row['Loops'] for row in self.shown().values()})

    def check_cut(self):
        """A descriptor that is wrong makes no circle, and the loop counts.

        The owner of the ports corrects it by a tag.
        """
        self.make_chain_of(csar.of_catalog(
            self.name, vnfd=lambda text: text.replace('transparent: true',
                                                      'routed: true')))
        for number in (1, 2):
            self.send()
            waiters.until(lambda: self.counters()['looped'],
                          lambda seen: seen == number, 'a loop is cut')
        self.assertEqual(2, self.counters()['packets'])
        entered, hop = self.shown().values()
        self.assertEqual((2, 2), (entered['Packets'], hop['Packets']))
        self.assertEqual(2, hop['Loops'], hop)
        tags = self.os_primary.network.TagsClient()
        for port in self.os_primary.ports_client.list_ports(
                description=f'clickos-vnf:{self.vnf_id}')['ports']:
            tags.create_tag('ports', port['id'], hop_tags.TRANSPARENT)
        waiters.until(self.answers, bool, 'the tag lets packets pass')

    def answers(self):
        """Send a request; return whether an answer has arrived."""
        self.send()
        return self.passed(self.sender, 'heard')


class ShaperTest(OneHopCase):

    name = 'shaper'

    @decorators.attr(type='smoke')
    @decorators.idempotent_id('9c1d5a14-3f0e-4b52-8d4e-7c0a5f2e6b01')
    def test_each_packet_passes_once(self):
        self.check_passes()

    @decorators.idempotent_id('9c1d5a14-3f0e-4b52-8d4e-7c0a5f2e6b02')
    def test_a_wrong_descriptor_makes_no_circle(self):
        self.check_cut()


class IpsTest(OneHopCase):

    name = 'ips'

    @decorators.idempotent_id('9c1d5a14-3f0e-4b52-8d4e-7c0a5f2e6b03')
    def test_each_packet_passes_once(self):
        self.check_passes()

    @decorators.idempotent_id('9c1d5a14-3f0e-4b52-8d4e-7c0a5f2e6b04')
    def test_a_wrong_descriptor_makes_no_circle(self):
        self.check_cut()

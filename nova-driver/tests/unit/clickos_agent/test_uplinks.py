# SPDX-License-Identifier: Apache-2.0
"""Uplinks follow Neutron: over oslo.messaging, to a cosmosd double."""

from clickos_client import neutron_rpc
import cosmos_client
import oslo_messaging

from clickos_agent import ports
from clickos_agent import uplinks
from tests.unit.clickos_agent import test_ports


def network(kind, number, segment, peers=(), physical=None):
    return {'switch': 'vale0', 'segment': segment, 'network_type': kind,
            'physical_network': physical, 'segmentation_id': number,
            'peers': list(peers)}


class Plugin:
    """Neutron's half, with networks that a test sets."""

    target = oslo_messaging.Target(version=neutron_rpc.VERSION)

    def __init__(self):
        self.answer = {'networks': []}

    def get_networks(self, context, host):
        return self.answer


class UplinksTest(test_ports.TestCase):

    plugin_class = Plugin

    def setUp(self):
        super().setUp()
        self.neutron = ports.Neutron(self.transport, 'compute1', 60)
        self.uplinks = self.make({'physnet1': 'eth1'}, '192.0.2.1')

    def make(self, interfaces, tunnel_ip):
        client = cosmos_client.CosmosClient(self.cosmosd.path, 60)
        return uplinks.Uplinks(client, self.neutron, interfaces, tunnel_ip)

    def look(self, *networks):
        """Return the uplinks after a look."""
        self.plugin.answer = {'networks': list(networks)}
        self.uplinks.run_once()
        return self.cosmosd.uplinks

    def changes(self):
        return [verb for verb in self.cosmosd.verbs()
                if verb not in ('uplink-list', 'list')]

    def test_each_type_has_its_far_end(self):
        vxlan = {'vni': 5, 'local': '192.0.2.1', 'peers': ['192.0.2.2']}
        networks = (network('vlan', 7, 7, physical='physnet1'),
                    network('flat', None, 4095, physical='physnet1'),
                    network('vxlan', 5, 4101, ['192.0.2.2']),
                    network('local', None, 1 << 28),
                    network('vlan', 8, 8, physical='physnet2'))
        wanted = {('vale0', 7): {'ifname': 'eth1', 'vlan': 7},
                  ('vale0', 4095): {'ifname': 'eth1'},
                  ('vale0', 4101): {'vxlan': vxlan}}
        self.assertEqual(wanted, self.look(*networks))
        count = len(self.changes())
        self.assertEqual(wanted, self.look(*networks))
        self.assertEqual(count, len(self.changes()))

    def test_peers_change_and_no_tunnel_is_made_without_an_address(self):
        for peers in ([], ['192.0.2.2']):
            found = self.look(network('vxlan', 5, 4101, peers))
            self.assertEqual(peers, found['vale0', 4101]['vxlan']['peers'])
        self.cosmosd.uplinks.clear()
        self.uplinks = self.make({}, None)
        self.assertEqual({}, self.look(network('vxlan', 5, 4101)))

    def test_an_uplink_goes_after_two_looks(self):
        one = network('vxlan', 5, 4101)
        self.look(one)
        self.assertEqual(1, len(self.look()))
        self.assertEqual(1, len(self.look(one)))
        self.assertEqual(1, len(self.look()))
        self.assertEqual({}, self.look())

    def test_one_that_fails_leaves_the_others(self):
        self.cosmosd.faults['uplink-set'] = ('switch', 'no interface eth1')
        self.look(network('vlan', 7, 7, physical='physnet1'))
        self.cosmosd.faults.clear()
        self.assertEqual(1, len(self.look(
            network('vlan', 7, 7, physical='physnet1'))))

    def test_a_bad_answer_changes_nothing(self):
        for answer in ({}, {'networks': [{}]}, {'networks': 5}, None):
            self.plugin.answer = answer
            self.assertRaises(ports.NeutronUnavailable, self.uplinks.run_once)
        self.assertEqual([], self.changes())

# SPDX-License-Identifier: Apache-2.0
"""A second project has a chain on a network that is shared with it."""

from tempest.lib.common.utils import data_utils
from tempest.lib import decorators
from tempest.lib import exceptions

from clickos_tempest_plugin.common import tenant
from clickos_tempest_plugin.common import waiters
from clickos_tempest_plugin.tests import base
from clickos_tempest_plugin.tests.scenario import test_chains

IDLE = 'FromDevice(0) -> Discard;'
#: Counts what it gets, and sends as others: with both addresses of a victim,
#: and with the victim's MAC address alone.
FORGER = '''
out :: Queue -> ToDevice(1);
RatedSource(DATA "forged", RATE 50) -> UDPIPEncap({ip}, 7, {peer_ip}, 7)
  -> EtherEncap(0x0800, {mac}, {peer_mac}) -> out;
RatedSource(DATA "forged", RATE 50) -> UDPIPEncap({own_ip}, 7, {peer_ip}, 7)
  -> EtherEncap(0x0800, {mac}, {peer_mac}) -> out;
FromDevice(0) -> right :: Counter -> Discard;
FromDevice(1) -> left :: Counter -> Discard;
'''


class Member(tenant.Tenant):
    """A project on networks of another one, without a VIM."""

    def __init__(self, clients, networks, image_ref):
        self.clients, self.networks = clients, networks
        self.image_ref = image_ref
        self.clickos = clients.clickos.ClickOSClient()
        self.servers = clients.servers_client


class ClaimsTest(test_chains.SfcMixin, base.OnHostTest):
    """The first project has a client and a server on its network."""

    credentials = ['primary', 'admin', 'alt']

    def setUp(self):
        super().setUp()
        self.make_ends()
        self.share()
        # From here on the second project acts.
        self.tenant = Member(self.os_alt, self.tenant.networks,
                             self.tenant.image_ref)
        self.sfc = self.os_alt.sfc.SfcClient()
        self.sender, self.ingress, self.egress = (
            self.tenant.make_port('left', self.addCleanup)
            for _ in range(3))

    def share(self):
        """Share the network with the second project."""
        policy = self.sfc.call('POST', 'v2.0/rbac-policies', 201, {
            'rbac_policy': {
                'object_type': 'network', 'action': 'access_as_shared',
                'object_id': self.tenant.networks['left'].id,
                'target_tenant': self.os_alt.credentials.project_id}},
        )[1]['rbac_policy']['id']
        self.addCleanup(self.sfc.call, 'DELETE',
                        f'v2.0/rbac-policies/{policy}', 204)

    def boot_hop(self):
        """Start a sender and a hop that forges; return the hop's server."""
        self.tenant.boot(data_utils.rand_name('sender'), [self.sender], IDLE,
                         self.addCleanup)
        own_ip, = (each['ip_address'] for each in self.sender['fixed_ips'])
        return self.tenant.boot(
            data_utils.rand_name('forger'), [self.ingress, self.egress],
            FORGER.format(ip=self.client.ip, mac=self.client.mac,
                          own_ip=own_ip, peer_ip=self.server.ip,
                          peer_mac=self.server.mac), self.addCleanup)

    @staticmethod
    def claim(network):
        """Return the parameters of a group that claims a network."""
        return {'port_pair_group_parameters': {'ppg_n_tuple_mapping': {
            'ingress_n_tuple': {},
            'egress_n_tuple': {'source_ip_prefix': network}}}}

    def counters(self, server_id):
        """Return the counters of the hop's second port."""
        found = {port['id']: port['counters'] for port
                 in self.tenant.clickos.list_ports(server_id)}
        return found[self.egress['id']]

    @staticmethod
    def dropped(counters):
        """Return how many frames of a port the switch dropped."""
        return sum(count for name, count in counters.items()
                   if name.startswith('dropped_'))

    @decorators.attr(type=['gate', 'negative'])
    @decorators.idempotent_id('5b0c7a52-6f4e-4b57-8a53-6f1f7c0f8e01')
    def test_a_second_project_takes_and_forges_no_packets(self):
        ping = self.client.ping(self.server)
        hop = self.boot_hop()       # a pair's ports have to be on a host
        pair = self.make('port_pair', ingress=self.ingress['id'],
                         egress=self.egress['id'])
        for network in ('0.0.0.0/0', '10.10.1.0/24', f'{self.client.ip}/32',
                        f'{self.server.ip}/32'):
            refused = self.assertRaises(
                exceptions.Conflict, self.sfc.create, 'port_pair_group',
                port_pairs=[pair], **self.claim(network))
            self.assertIn(f'{network}: more than port {self.egress["id"]}',
                          str(refused))
        own, = (each['ip_address'] for each in self.egress['fixed_ips'])
        group = self.make('port_pair_group', port_pairs=[pair],
                          **self.claim(f'{own}/32'))
        # A group without pairs claims for no port, and then it cannot get one.
        wide = self.make('port_pair_group', **self.claim('0.0.0.0/0'))
        self.sfc.update('port_pair_group', group, port_pairs=[])
        refused = self.assertRaises(exceptions.Conflict, self.sfc.update,
                                    'port_pair_group', wide,
                                    port_pairs=[pair])
        self.assertIn('0.0.0.0/0: more than port', str(refused))
        self.sfc.update('port_pair_group', group, port_pairs=[pair])
        flow = self.make('flow_classifier',
                         logical_source_port=self.sender['id'])
        chain = self.make('port_chain', port_pair_groups=[group],
                          flow_classifiers=[flow],
                          chain_parameters={'symmetric': True})
        self.assertHops(chain, 1)
        # A frame under way is received and not judged yet.
        waiters.until(
            lambda: self.counters(hop),
            lambda seen: seen['dropped_spoof'] > 100
            and seen['rx_packets'] == self.dropped(seen),
            'no packet but forged ones, and none of them passed')
        self.assertTrue(self.client.can_ping(self.server))
        self.assertEqual((), ping.result().lost)
        self.assertEqual([0], self.steered(chain))
        self.assertEqual(0, self.passed(hop))

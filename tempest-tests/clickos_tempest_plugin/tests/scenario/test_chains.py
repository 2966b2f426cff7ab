# SPDX-License-Identifier: Apache-2.0
"""Chains of networking-sfc steer packets through guests."""

import time

from tempest.lib.common.utils import data_utils
from tempest.lib.common.utils import test_utils
from tempest.lib import decorators
from tempest.lib import exceptions

from clickos_tempest_plugin.common import traffic
from clickos_tempest_plugin.common import waiters
from clickos_tempest_plugin.tests import base

#: Copies each frame from one of its vifs to the other.
WIRE = '''
FromDevice(0) -> right :: Counter -> Queue -> ToDevice(1);
FromDevice(1) -> left :: Counter -> Queue -> ToDevice(0);
'''


class ChainsTest(base.OnHostTest):
    """A client, a server and two wires on one network."""

    def setUp(self):
        super().setUp()
        self.sfc = self.os_primary.sfc.SfcClient()
        self.client, self.server = (
            traffic.Endpoint(self.tenant, self.os_admin,
                             'left', self.addCleanup) for _ in range(2))

    def make(self, kind, **values):
        """Make a resource of networking-sfc until the end of the test."""
        made = self.sfc.create(kind, **values)
        self.addCleanup(test_utils.call_and_ignore_notfound_exc,
                        self.sfc.delete, kind, made['id'])
        return made['id']

    def make_hop(self):
        """Boot a wire; return its server and port pair group."""
        server_id, pair = self.make_pair()
        return server_id, self.make('port_pair_group', port_pairs=[pair])

    def make_pair(self):
        """Boot a wire; return its server and port pair."""
        ports = [self.tenant.make_port('left', self.addCleanup,
                                       port_security_enabled=False)
                 for _ in range(2)]
        server_id = self.tenant.boot(data_utils.rand_name('wire'), ports,
                                     WIRE, self.addCleanup)
        pair = self.make('port_pair', ingress=ports[0]['id'],
                         egress=ports[1]['id'],
                         service_function_parameters={'weight': 2})
        refused = self.assertRaises(
            exceptions.Conflict, self.os_admin.ports_client.delete_port,
            ports[1]['id'])
        self.assertIn(f'is in port pair {pair}', str(refused))
        return server_id, pair

    def make_chain(self, groups):
        """Make a chain from the client to the server and back."""
        flow = self.make('flow_classifier',
                         source_ip_prefix=f'{self.client.ip}/32',
                         destination_ip_prefix=f'{self.server.ip}/32')
        return self.make('port_chain', port_pair_groups=groups,
                         flow_classifiers=[flow],
                         chain_parameters={'symmetric': True})

    def steered(self, chain):
        """Return the packets that each hop got, [] if there is no chain."""
        try:
            hops = self.tenant.clickos.show_chain(chain)['hops']
        except exceptions.Conflict:
            return []
        return [hop['packets'] for hop in hops]

    def passed(self, server_id):
        """Return how many frames a wire has sent to the right."""
        return int(self.tenant.clickos.read_handler(server_id,
                                                    'right.count'))

    def assertHops(self, chain, hops):
        """Wait until the switch's chain has as many hops."""
        waiters.until(lambda: self.steered(chain),
                      lambda seen: len(seen) == hops, f'{hops} hops')

    @decorators.idempotent_id('4e8f1d7b-0c0e-4a7b-9f1e-0a7c5b0d2e31')
    def test_packets_pass_the_hops_until_the_chain_is_deleted(self):
        self.assertTrue(self.client.can_ping(self.server))
        (first, one), (second, two) = self.make_hop(), self.make_hop()
        chain = self.make_chain([one, two])
        self.assertHops(chain, 2)
        self.assertTrue(self.client.can_ping(self.server))
        self.assertEqual([4, 4], self.steered(chain))
        self.assertEqual([2, 2], [self.passed(first), self.passed(second)])
        ping = self.client.ping(self.server)
        for groups in ([one], [two, one], [two], [one, two]):
            self.sfc.update('port_chain', chain, port_pair_groups=groups)
            self.assertEqual(groups, self.sfc.show(
                'port_chain', chain)['port_pair_groups'])
            self.assertHops(chain, len(groups))
        sent, received = ping.result()
        self.assertGreater(sent, 5)
        self.assertEqual(sent, received)
        self.sfc.delete('port_chain', chain)
        waiters.until(lambda: self._is_passed_by(first), bool,
                      'packets go straight')

    def _is_passed_by(self, server_id):
        """Ping, and tell if a wire counted no frame."""
        before = self.passed(server_id)
        self.assertTrue(self.client.can_ping(self.server))
        return before == self.passed(server_id)

    @decorators.idempotent_id('4e8f1d7b-0c0e-4a7b-9f1e-0a7c5b0d2e33')
    def test_connections_stay_with_their_instance_while_others_come(self):
        (first, one), (second, two) = self.make_pair(), self.make_pair()
        group = self.make('port_pair_group', port_pairs=[one])
        self.assertHops(self.make_chain([group]), 1)
        self.server.serve_echo()
        old = self.client.connect(self.server, 50)
        self.sfc.update('port_pair_group', group, port_pairs=[one, two])
        # Only connections that begin show that the second one is there.
        waiters.until(lambda: self._connects(second), bool,
                      'new connections at the second instance')
        before = self.passed(first), self.passed(second)
        time.sleep(2)
        after = self.passed(first), self.passed(second)
        self.assertGreater(after[0], before[0] + 50)
        self.assertEqual(before[1], after[1])
        self.sfc.update('port_pair_group', group, port_pairs=[one])
        self.assertEqual(0, old.lost())

    def _connects(self, server_id):
        """Open connections, and tell if a wire counted frames of them."""
        before = self.passed(server_id)
        self.assertEqual(0, self.client.connect(self.server, 10).lost())
        return self.passed(server_id) > before

    @decorators.attr(type='negative')
    @decorators.idempotent_id('4e8f1d7b-0c0e-4a7b-9f1e-0a7c5b0d2e32')
    def test_a_port_of_another_project_is_no_hop(self):
        # The network's owner sees this port: networking-sfc would take it.
        ports = self.os_admin.ports_client
        network = self.tenant.networks['left'].id
        theirs = ports.create_port(
            network_id=network, device_id='theirs',
            tenant_id=self.os_admin.credentials.project_id)['port']['id']
        self.addCleanup(ports.delete_port, theirs)
        for kind, values in (
                ('port_pair', {'ingress': theirs, 'egress': theirs}),
                ('flow_classifier', {'logical_source_port': theirs})):
            refused = self.assertRaises(
                exceptions.Conflict, self.sfc.create, kind, **values)
            self.assertIn(f'port {theirs}: belongs to another project',
                          str(refused))

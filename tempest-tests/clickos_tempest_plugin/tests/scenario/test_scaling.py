# SPDX-License-Identifier: Apache-2.0
"""A VNF grows and shrinks by whole guests, while packets flow."""

from tempest.lib import decorators
from tempest.lib import exceptions

from clickos_tempest_plugin.tests.scenario import case


class ScalingTest(case.Scaling, case.FirewallCase):

    def make_hop(self):
        """Make the first guest a hop; return its group's id."""
        sfc = self.os_primary.sfc.SfcClient()
        ports = {port['name']: port['id'] for port in
                 self.os_primary.network.PortsClient().list_ports(
                     description=f'clickos-vnf:{self.vnf_id}')['ports']}
        pair = sfc.create('port_pair', ingress=ports['VDU1-0-left'],
                          egress=ports['VDU1-0-right'])['id']
        self.addCleanup(sfc.delete, 'port_pair', pair)
        group = sfc.create('port_pair_group', port_pairs=[pair])['id']
        self.addCleanup(sfc.delete, 'port_pair_group', group)
        return lambda: len(sfc.show('port_pair_group', group)['port_pairs'])

    @decorators.attr(type=['gate', 'negative'])
    @decorators.idempotent_id('4e8f1d7b-0c0e-4a7b-9f1e-0a7c5b0d2e45')
    def test_a_vnf_of_a_chain_keeps_its_guests(self):
        pairs = self.make_hop()
        refused = self.assertRaises(
            exceptions.Conflict, self.tenant.tacker.start, self.vnf_id,
            'terminate', terminationType='FORCEFUL')
        self.assertIn('is in a chain; remove the hop', str(refused))
        self.assertEqual(1, pairs())
        self.assertEqual('ACTIVE', self.tenant.servers.show_server(
            self.server_id)['server']['status'])
        self.assertTrue(self.left.can_ping(self.right))

    @decorators.attr(type='slow')
    @decorators.idempotent_id('4e8f1d7b-0c0e-4a7b-9f1e-0a7c5b0d2e41')
    def test_guests_come_and_go_while_packets_flow(self):
        pairs = self.make_hop()
        ping = self.left.ping(self.right)
        self.scale('SCALE_OUT', 2)
        guests = self.guests()
        self.assertEqual((2, 3, 3), (self.level(), len(guests), pairs()))
        self.assertEqual(self.server_id, guests[0])
        for server_id in guests:
            self.assertEqual('ACTIVE', self.tenant.servers.show_server(
                server_id)['server']['status'])
            self.assertEqual(case.OPEN, self.rules_of(server_id))
        self.assertEqual('accepted', self.update(case.NO_HTTP)['verdict'])
        self.assertEqual([case.NO_HTTP] * 3, [
            self.rules_of(server_id) for server_id in guests])
        refused = self.assertRaises(exceptions.BadRequest, self.scale,
                                    'SCALE_OUT', 2)
        self.assertIn('aspect capacity: level 4 is outside 0 to ',
                      str(refused))
        self.scale('SCALE_IN')
        self.assertEqual((1, guests[:2], 2),
                         (self.level(), self.guests(), pairs()))
        self.tenant.heal(self.vnf_id)
        self.assertEqual(2, len(self.guests()))
        self.scale('SCALE_IN')
        self.assertEqual((0, 1, 1), (self.level(), len(self.guests()),
                                     pairs()))
        self.assertEqual(2, len(self.tenant.addresses(self.vnf_id)))
        ping.result()
        self.assertTrue(self.left.can_ping(self.right))

    @decorators.attr(type='slow')
    @decorators.idempotent_id('4e8f1d7b-0c0e-4a7b-9f1e-0a7c5b0d2e42')
    def test_the_next_guest_begins_with_the_values_of_its_vdu(self):
        self.assertEqual('accepted', self.update(case.NO_HTTP)['verdict'])
        self.scale('SCALE_OUT')
        second = self.guests()[1]
        self.clickos.write_handler(second, 'fw.config', 'deny all')
        self.scale('SCALE_IN')
        self.scale('SCALE_OUT')
        first, third = self.guests()
        self.assertNotEqual(second, third)
        self.assertEqual([case.NO_HTTP] * 2, [
            self.rules_of(server_id) for server_id in (first, third)])
        self.assertEqual(
            [['fw.config', ', '.join(case.NO_HTTP)]],
            self.clickos.show_desired_state(third)['writes'])

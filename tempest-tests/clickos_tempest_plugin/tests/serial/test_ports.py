# SPDX-License-Identifier: Apache-2.0
"""Ports that a guest loses do not come back with its toolstack."""

from tempest.lib import decorators

from clickos_tempest_plugin.tests.scenario import ports


@decorators.serial
class LostPortsTest(ports.PortsCase):
    """The host's cosmosd restarts."""

    @decorators.attr(type='slow')
    @decorators.idempotent_id('4e8f1d7b-0c0e-4a7b-9f1e-0a7c5b0d2e23')
    def test_an_unbound_and_a_deleted_port_leave_the_switch(self):
        self.update(self.admin_ports, **{
            'device_id': '', 'device_owner': '', 'binding:host_id': ''})
        self.assertCutOff(*self.servers)
        self.ports_client.delete_port(self.ports[0]['id'])
        self.host.restart('cosmosd')
        self.admin_ports.delete_port(self.ports[1]['id'])
        self.assertCutOff(*self.servers)
        for server_id in self.servers:
            places = [left for left in self.host.leftovers(server_id)
                      if 'port' in str(left)]
            self.assertEqual([], places)

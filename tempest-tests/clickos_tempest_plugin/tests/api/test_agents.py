# SPDX-License-Identifier: Apache-2.0
"""Neutron knows the agents of ClickOS hosts, and binds ports there only."""

from clickos_client import neutron_rpc
from tempest.lib import decorators

from clickos_tempest_plugin.tests import base


class AgentsTest(base.ClickOSTest):
    """Ports as an administrator binds them."""

    def bind(self, host):
        """Return the vif type of a port of a host."""
        port = self.tenant.make_port('left', self.addCleanup)
        client = self.os_admin.ports_client
        return client.update_port(port['id'], **{
            'binding:host_id': host})['port']['binding:vif_type']

    @decorators.attr(type='gate')
    @decorators.idempotent_id('7b0f4e86-8b1c-4c0e-9f57-1d2c9a3b7e01')
    def test_ports_are_bound_where_an_agent_is_alive(self):
        agents = self.os_admin.network_agents_client.list_agents(
            agent_type=neutron_rpc.AGENT_TYPE)['agents']
        self.assertIn(True, [agent['alive'] for agent in agents])
        for agent in agents:
            self.assertEqual('vale' if agent['alive'] else 'binding_failed',
                             self.bind(agent['host']), agent['host'])
        self.assertEqual('binding_failed', self.bind('no-such-host'))

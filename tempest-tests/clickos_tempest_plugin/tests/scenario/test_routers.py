# SPDX-License-Identifier: Apache-2.0
"""Neutron's own routers and DHCP servers on networks of ClickOS guests."""

from tempest import config
from tempest.lib.common.utils import data_utils
from tempest.lib import decorators
from tempest.lib import exceptions

from clickos_tempest_plugin.common import traffic
from clickos_tempest_plugin.common import waiters
from clickos_tempest_plugin.tests import base

CONF = config.CONF

#: Answers ARP requests and pings.
ANSWERER = '''
FromDevice(0) -> kinds :: Classifier(12/0806 20/0001, 12/0800, -);
to :: Queue -> ToDevice(0);
kinds[0] -> ARPResponder({ip} {mac}) -> to;
kinds[1] -> CheckIPHeader(14) -> ICMPPingResponder -> EtherMirror -> to;
kinds[2] -> Discard;
'''
INSIDE, OUTSIDE = '10.20.1.0/24', '203.0.113.0/24'


class RoutersTest(base.OnHostTest):
    """A guest behind a router, and a machine outside."""

    @classmethod
    def skip_checks(cls):
        super().skip_checks()
        if not CONF.network_feature_enabled.floating_ips:
            raise cls.skipException('floating IPs are not available')

    def setUp(self):
        super().setUp()
        self.project_id = self.os_primary.credentials.project_id
        self.outside = self.make_network(self.os_admin, OUTSIDE,
                                         enable_dhcp=False,
                                         **{'router:external': True})
        self.inside = self.make_network(self.os_primary, INSIDE)
        self.router = self.make_router()

    def make_network(self, clients, cidr, enable_dhcp=True, **wanted):
        """Make a network with a subnet; return the subnet."""
        network = clients.networks_client.create_network(
            name=data_utils.rand_name('net'), **wanted)['network']
        self.addCleanup(clients.networks_client.delete_network,
                        network['id'])
        subnet = clients.subnets_client.create_subnet(
            network_id=network['id'], cidr=cidr, ip_version=4,
            enable_dhcp=enable_dhcp)['subnet']
        self.addCleanup(clients.subnets_client.delete_subnet, subnet['id'])
        return subnet

    def make_router(self):
        """Make a router between the two networks; return its id."""
        client = self.os_primary.routers_client
        router = client.create_router(
            name=data_utils.rand_name('router'), external_gateway_info={
                'network_id': self.outside['network_id']})['router']
        self.addCleanup(client.delete_router, router['id'])
        client.add_router_interface(router['id'],
                                    subnet_id=self.inside['id'])
        self.addCleanup(client.remove_router_interface, router['id'],
                        subnet_id=self.inside['id'])
        return router['id']

    def boot(self):
        """Start a guest that answers pings; return its port."""
        port = self.make_port(self.os_primary, self.inside)
        self.tenant.boot(
            data_utils.rand_name('answerer'), [port],
            ANSWERER.format(ip=port['fixed_ips'][0]['ip_address'],
                            mac=port['mac_address']), self.addCleanup)
        return port

    def make_port(self, clients, subnet):
        """Make a port of a network that any packet may enter."""
        port = clients.ports_client.create_port(
            network_id=subnet['network_id'],
            security_groups=[])['port']
        self.addCleanup(clients.ports_client.delete_port, port['id'])
        return clients.ports_client.update_port(
            port['id'], port_security_enabled=False)['port']

    def make_machine(self, clients, subnet, **wanted):
        """Attach a machine outside of Nova to a network."""
        return traffic.Machine(
            self.os_admin, self.make_port(clients, subnet), self.addCleanup,
            **wanted)

    @decorators.idempotent_id('3f7a1c02-90c5-4a53-8b1f-6a3d7d1b9e01')
    def test_a_floating_ip_leads_to_a_guest_and_dhcp_answers(self):
        port = self.boot()
        client = self.os_primary.floating_ips_client
        floating = client.create_floatingip(
            floating_network_id=self.outside['network_id'],
            port_id=port['id'])['floatingip']
        self.addCleanup(client.delete_floatingip, floating['id'])
        machine = self.make_machine(self.os_admin, self.outside)
        address = floating['floating_ip_address']
        waiters.until(lambda: machine.can_ping_address(address), bool,
                      f'a ping to {address} through the router is answered')
        inner = self.make_machine(self.os_primary, self.inside)
        self.assertTrue(inner.can_ping_address(self.inside['gateway_ip']))
        self.assertEqual(inner.ip, inner.lease())

    @decorators.attr(type='negative')
    @decorators.idempotent_id('3f7a1c02-90c5-4a53-8b1f-6a3d7d1b9e02')
    def test_a_member_cannot_take_the_interface_of_a_router(self):
        # Nova knows no server with the router's id.
        query = {'device_id': self.router,
                 'network_id': self.inside['network_id']}
        ports = self.os_admin.ports_client
        waiters.until(
            lambda: [port['binding:vif_type'] for port in
                     ports.list_ports(**query)['ports']],
            lambda found: found == ['vale'], "the router's port is bound")
        before, = ports.list_ports(**query)['ports']
        self.assertRaises(
            exceptions.Conflict, self.os_primary.ports_client.update_port,
            before['id'], device_id='', device_owner='')
        after = ports.show_port(before['id'])['port']
        self.assertEqual(
            *((port['device_id'], port['device_owner'])
              for port in (before, after)))

# SPDX-License-Identifier: Apache-2.0
"""Tenants' networks between two ClickOS hosts."""

from tempest import config
from tempest.lib.common.utils import data_utils
from tempest.lib import decorators

from clickos_tempest_plugin.common import waiters
from clickos_tempest_plugin.tests import base

CONF = config.CONF

#: Sends 50 broadcasts a second, and counts those of its peer and of others.
TALKER = '''
RatedSource(DATA "hello", RATE 50)
  -> UDPIPEncap({ip}, 7, 255.255.255.255, 7)
  -> EtherEncap(0x0800, {mac}, ff:ff:ff:ff:ff:ff) -> Queue -> ToDevice(0);
FromDevice(0) -> from :: Classifier(6/{peer}, -);
from[0] -> heard :: Counter -> Discard;
from[1] -> strange :: Counter -> Discard;
'''
CIDR = '10.10.1.0/24'


class NetworksTest(base.TwoHostsMixin, base.ClickOSTest):
    """A VLAN and a VXLAN network of one number, each with two guests."""

    def make_network(self, **wanted):
        """Make a network as an administrator; return it."""
        networks = self.os_admin.networks_client
        network = networks.create_network(
            name=data_utils.rand_name('between'),
            project_id=self.os_primary.credentials.project_id,
            **{f'provider:{key}': value for key, value in wanted.items()})[
                'network']
        self.addCleanup(networks.delete_network, network['id'])
        subnet = self.os_admin.subnets_client.create_subnet(
            network_id=network['id'], cidr=CIDR, ip_version=4,
            project_id=self.os_primary.credentials.project_id,
            enable_dhcp=False, gateway_ip=None)['subnet']
        self.addCleanup(self.os_admin.subnets_client.delete_subnet,
                        subnet['id'])
        return network

    def boot_pair(self, network):
        """Start two talkers on two hosts; return their servers' ids."""
        client = self.os_primary.ports_client
        ports = []
        for _ in range(2):
            ports.append(client.create_port(
                network_id=network['id'])['port'])
            self.addCleanup(client.delete_port, ports[-1]['id'])
        zones = ({}, {'availability_zone': CONF.clickos.second_zone})
        return [self.tenant.boot(
            data_utils.rand_name('talker'), [port],
            TALKER.format(ip=port['fixed_ips'][0]['ip_address'],
                          mac=port['mac_address'],
                          peer=peer['mac_address'].replace(':', '')),
            self.addCleanup, **zone)
            for port, peer, zone in zip(ports, ports[::-1], zones)]

    def count(self, server_id, name):
        """Return a counter of a talker."""
        return int(self.tenant.clickos.read_handler(server_id,
                                                    f'{name}.count'))

    def assertHears(self, server_id):
        """Check that packets of the peer arrive, soon."""
        before = self.count(server_id, 'heard')
        waiters.until(lambda: self.count(server_id, 'heard'),
                      lambda seen: seen > before, f'{server_id} hears')

    @decorators.idempotent_id('0d7c5b1e-3f64-4b0a-8d0e-54a1b0f2c601')
    def test_each_network_spans_the_hosts_and_hears_no_other(self):
        vlan = self.make_network()
        number = vlan['provider:segmentation_id']
        self.assertEqual('vlan', vlan['provider:network_type'])
        vxlan = self.make_network(network_type='vxlan',
                                  segmentation_id=number)
        servers = [*self.boot_pair(vlan), *self.boot_pair(vxlan)]
        hosts = {self.os_admin.servers_client.show_server(server)['server'][
            'OS-EXT-SRV-ATTR:host'] for server in servers}
        self.assertEqual(2, len(hosts))
        for server in servers:
            self.assertHears(server)
        for server in servers:
            self.assertEqual(0, self.count(server, 'strange'))

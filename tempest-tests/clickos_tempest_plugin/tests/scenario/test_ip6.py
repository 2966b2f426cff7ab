# SPDX-License-Identifier: Apache-2.0
"""Routed VNFs on networks with IPv6 subnets."""

import collections

from tempest import config
from tempest.lib.common.utils import data_utils
from tempest.lib import decorators

from clickos_tempest_plugin.common import csar
from clickos_tempest_plugin.common import tenant
from clickos_tempest_plugin.common import traffic
from clickos_tempest_plugin.tests import base

CONF = config.CONF

#: Subnets by side and IP version, and the addresses of VNF and machine there.
SUBNETS = {'left': {4: '10.10.5.0/24', 6: '2001:db8:5::/64'},
           'right': {4: '10.10.6.0/24', 6: '2001:db8:6::/64'}}
ROUTER, MACHINE = '1', '9'

Side = collections.namedtuple('Side', 'network_id subnets')


def _address(side, version, host):
    return SUBNETS[side][version].partition('/')[0].removesuffix('0') + host


class Ip6Test(base.OnHostTest):
    """A VNF as shipped between two machines."""

    @classmethod
    def skip_checks(cls):
        super().skip_checks()
        if not CONF.clickos.catalog_path:
            raise cls.skipException('[clickos] catalog_path is not set')

    def make_side(self, side, versions):
        """Make a network with a subnet for each version."""
        networks = self.os_primary.networks_client
        network = networks.create_network(
            name=data_utils.rand_name(side))['network']
        self.addCleanup(networks.delete_network, network['id'])
        subnets = {version: self.os_primary.subnets_client.create_subnet(
            network_id=network['id'], ip_version=version,
            cidr=SUBNETS[side][version], enable_dhcp=False,
            gateway_ip=None)['subnet']['id'] for version in versions}
        return Side(network['id'], subnets)

    def link(self, name, side):
        """Return the link of a connection point, with the first addresses."""
        addresses = [{'type': f'IPV{version}', 'subnetId': subnet,
                      'fixedAddresses': [_address(name, version, ROUTER)]}
                     for version, subnet in side.subnets.items()]
        return {'id': name, 'resourceId': side.network_id, 'extCps': [{
            'cpdId': name, 'cpConfig': [{'cpProtocolData': [{
                'layerProtocol': 'IP_OVER_ETHERNET',
                'ipOverEthernet': {'ipAddresses': addresses}}]}]}]}

    def deploy(self, package, *versions):
        """Let Tacker deploy a package; return the two machines."""
        sides = {name: self.make_side(name, versions) for name in SUBNETS}
        self.vnf_id = self.tenant.create_vnf(
            self.tenant.onboard(package, self.addCleanup), self.addCleanup)
        tenant.completed(self.tenant.operate(
            self.vnf_id, 'instantiate', flavourId='simple',
            vimConnectionInfo=[{'id': 'vim', 'vimId': self.tenant.vim_id,
                                'vimType': 'openstack'}],
            extVirtualLinks=[self.link(*side) for side in sides.items()]))
        return [self.machine(*side) for side in sides.items()]

    def machine(self, name, side):
        """Attach a machine with a port of its own, and routes to the VNF."""
        ports = self.os_primary.ports_client
        port = ports.create_port(
            network_id=side.network_id, fixed_ips=[
                {'subnet_id': subnet,
                 'ip_address': _address(name, version, MACHINE)}
                for version, subnet in side.subnets.items()])['port']
        self.addCleanup(ports.delete_port, port['id'])
        port['fixed_ips'].sort(key=lambda each: ':' in each['ip_address'])
        length = '64' if ':' in port['fixed_ips'][0]['ip_address'] else '24'
        found = traffic.Machine(
            self.os_admin, port, self.addCleanup,
            [length, *(f'--allow={SUBNETS[name][version]}'
                       for version in side.subnets)])
        if len(port['fixed_ips']) > 1:
            found.add_addresses(f'{_address(name, 6, MACHINE)}/64')
        for version in side.subnets:
            found.run('ip', f'-{version}', 'route', 'add', 'default', 'via',
                      _address(name, version, ROUTER))
        return found

    def pairs(self):
        """Return the networks among the address pairs of the VNF's ports."""
        return [[pair['ip_address'] for pair in port['allowed_address_pairs']]
                for port in self.os_primary.ports_client.list_ports(
                    description=f'clickos-vnf:{self.vnf_id}')['ports']]

    def assertRoutes(self, left, right, *versions):
        """Check that packets of all versions pass both ways."""
        for version in versions:
            for machine, other in ((left, 'right'), (right, 'left')):
                self.assertTrue(machine.can_ping_address(
                    _address(other, version, MACHINE)), (version, other))

    @decorators.attr(type='smoke')
    @decorators.idempotent_id('3a5e9b7c-51d2-4c0e-8b1f-6d2f0a4c7e01')
    def test_the_router_between_networks_of_both_versions(self):
        machines = self.deploy(csar.of_catalog('router'), 4, 6)
        self.assertRoutes(*machines, 4, 6)
        self.assertEqual([4, 4], [len(pairs) for pairs in self.pairs()])

    @decorators.idempotent_id('3a5e9b7c-51d2-4c0e-8b1f-6d2f0a4c7e02')
    def test_the_router_between_networks_of_ipv6(self):
        self.assertRoutes(*self.deploy(csar.of_catalog('router'), 6), 6)

    @decorators.idempotent_id('3a5e9b7c-51d2-4c0e-8b1f-6d2f0a4c7e03')
    def test_a_vnf_without_ipv6_between_networks_of_both_versions(self):
        machines = self.deploy(csar.firewall(
            vnfd=lambda text: text.replace('default: [deny all]',
                                           'default: [allow all]')), 4, 6)
        self.assertRoutes(*machines, 4)
        self.assertEqual([['0.0.0.0/0']] * 2, self.pairs())

# SPDX-License-Identifier: Apache-2.0
"""Connection points, from Neutron's ports and to Tacker."""

import types
import unittest

from clickos_client import connections

_VNF = 'f0000000-0000-4000-8000-000000000000'


def _port(name, addresses, network='n1', vnf_id=_VNF):
    return types.SimpleNamespace(
        id=f'id-{name}', name=name, network_id=network, status='ACTIVE',
        mac_address='fa:16:3e:00:00:01', description=f'clickos-vnf:{vnf_id}',
        fixed_ips=[{'ip_address': each} for each in addresses])


class ConnectionsTest(unittest.TestCase):

    def test_ports_have_guest_point_network_and_addresses(self):
        found = connections.of_vnf(_VNF, ['VDU1-0', 'VDU1-1'], [
            _port('VDU1-1-left', ['10.0.0.4']),
            _port('VDU1-0-right-side', ['10.0.1.3', '2001:db8::3'], 'n2'),
            _port('VDU1-0-left', ['10.0.0.3']),
            _port('VDU1-0-left', ['10.9.9.9'], vnf_id='other')], {'n1': 'lan'})
        self.assertEqual([
            ('VDU1-0', 'left', 'lan', ('10.0.0.3',)),
            ('VDU1-0', 'right-side', 'n2', ('10.0.1.3', '2001:db8::3')),
            ('VDU1-1', 'left', 'lan', ('10.0.0.4',))],
            [(each.guest, each.point, each.network, each.addresses)
             for each in found])
        self.assertEqual({
            'left': ['lan=10.0.0.3', 'lan=10.0.0.4'],
            'right-side': ['n2=10.0.1.3', 'n2=2001:db8::3']},
            connections.by_point(found))

    def test_the_longest_name_of_a_guest_counts(self):
        found, = connections.of_vnf(_VNF, ['a', 'a-0'],
                                    [_port('a-0-left', [])], {})
        self.assertEqual(('a-0', 'left', '–'), (
            found.guest, found.point, found.shown_addresses))

    def test_a_port_of_another_name_is_shown_by_it(self):
        port = _port('', ['10.0.0.3'])
        port.fixed_ips = None
        found, = connections.of_vnf(_VNF, ['VDU1-0'], [port], {})
        self.assertEqual(('', 'id-', ()), (found.guest, found.point,
                                           found.addresses))

    def test_a_link_has_addresses_of_both_families(self):
        config = connections.link('left', 'n1', ['10.0.0.3', '2001:db8::3'])
        point, = config['extCps']
        self.assertEqual([
            {'type': 'IPV4', 'fixedAddresses': ['10.0.0.3']},
            {'type': 'IPV6', 'fixedAddresses': ['2001:db8::3']}],
            point['cpConfig'][0]['cpProtocolData'][0]['ipOverEthernet'][
                'ipAddresses'])
        self.assertNotIn('ipOverEthernet', str(connections.link('l', 'n')))

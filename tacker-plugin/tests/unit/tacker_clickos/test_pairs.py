# SPDX-License-Identifier: Apache-2.0
"""Pairs of guests: one address, two hosts, a key, and VRRP in front."""

import base64
import copy
import json
import re

import yaml

from tacker_clickos import exception
from tacker_clickos import pairs
from tacker_clickos.vnfd import loader
from tests.unit.tacker_clickos import base
from tests.unit.tacker_clickos import test_infra_driver

TWO = [
    {'scaling_aspects': {
        'type': 'tosca.policies.nfv.ScalingAspects',
        'properties': {'aspects': {'guests': {
            'name': 'guests', 'description': 'both guests',
            'max_scale_level': 0, 'step_deltas': ['one']}}}}},
    {'deltas': {
        'type': 'tosca.policies.nfv.VduScalingAspectDeltas',
        'targets': ['VDU1'],
        'properties': {'aspect': 'guests',
                       'deltas': {'one': {'number_of_instances': 1}}}}},
    {'initial': {
        'type': 'tosca.policies.nfv.VduInitialDelta', 'targets': ['VDU1'],
        'properties': {'initial_delta': {'number_of_instances': 2}}}},
    {'levels': {
        'type': 'tosca.policies.nfv.InstantiationLevels',
        'properties': {'default_level': 'pair', 'levels': {'pair': {
            'description': 'both',
            'scale_info': {'guests': {'scale_level': 0}}}}}}}]


def make_pair(package):
    """Make the firewall's package one of a pair; return its VNFD."""
    path = package / 'Definitions' / 'firewall.yaml'
    vnfd = yaml.safe_load(path.read_text())
    policies = vnfd['topology_template']['policies']
    policies[0]['configuration']['properties']['ha'] = 'pair'
    policies += copy.deepcopy(TWO)
    path.write_text(json.dumps(vnfd))
    return vnfd


class PairTest(test_infra_driver.DriverTestCase):

    def setUp(self):
        super().setUp()
        make_pair(self.package)
        self.vnf = base.vnf_instance(guests=2)

    def by_name(self):
        return {port.name: port for port in self.cloud.ports.values()}

    def configurations(self):
        """Return {name of a guest: its configuration}."""
        return {server.name[:6]: self.document(server)['config']
                for server in self.cloud.servers.values()}

    def test_both_guests_have_the_virtual_addresses(self):
        self.instantiate()
        virtual = self.by_name()['virtual-VDU1-left']
        self.assertEqual('00:00:5e:00:01:01', virtual.mac_address)
        self.assertEqual('', virtual.device_id)
        (ip,) = [fixed['ip_address'] for fixed in virtual.fixed_ips]
        for text in self.configurations().values():
            self.assertIn('$LEFT_MAC 00:00:5e:00:01:01', text)
            self.assertIn('$LEFT_IP %s,' % ip, text)
        for guest in ('VDU1-0', 'VDU1-1'):
            self.assertEqual(
                [{'ip_address': each, 'mac_address': '00:00:5e:00:01:01'}
                 for each in (ip, '0.0.0.0/0')],
                self.by_name()[guest + '-left'].wanted[
                    'allowed_address_pairs'])

    def test_each_guest_knows_itself_and_the_other(self):
        self.instantiate()
        ports, found = self.by_name(), self.configurations()
        for own, peer, priority in (('VDU1-0', 'VDU1-1', 200),
                                    ('VDU1-1', 'VDU1-0', 100)):
            words = ' '.join(
                '%s %s' % (port.fixed_ips[0]['ip_address'], port.mac_address)
                for port in (ports[own + '-left'], ports[peer + '-left']))
            self.assertIn('VRRP(1 %s ' % words, found[own])
            self.assertIn('PRIORITY %d,' % priority, found[own])
        keys = {re.search(r'KEY (\S+)\)', text)[1]
                for text in found.values()}
        (key,) = keys
        self.assertEqual(32, len(base64.b64decode(key)))

    def test_the_statements_stand_behind_the_definitions(self):
        self.instantiate()
        text = self.configurations()['VDU1-0']
        order = [text.index(part) for part in (
            'define(', 'vrrp :: VRRP(', 'elementclass FromDevice',
            '# 1 "firewall.click"')]
        self.assertEqual(sorted(order), order)

    def test_the_guests_get_two_hosts_where_there_are_two(self):
        self.instantiate()
        (group,) = self.cloud.server_groups.values()
        self.assertEqual('soft-anti-affinity', group.policy)
        for server in self.cloud.servers.values():
            self.assertEqual({'group': group.id},
                             server.wanted['scheduler_hints'])

    def test_a_heal_keeps_ports_and_key(self):
        self.instantiate()
        before, ports = self.configurations(), set(self.cloud.ports)
        self.driver.instantiate_vnf(
            context=None, vnf_instance=self.vnf, vnfd_dict={},
            vim_connection_info=base.vim_connection(),
            instantiate_vnf_req=base.instantiate_request(
                test_infra_driver.RULES),
            grant_response={}, plugin=None,
            vnf_package_path=str(self.package))
        self.assertEqual(before, self.configurations())
        self.assertEqual(ports, set(self.cloud.ports))

    def test_nothing_is_left(self):
        self.instantiate()
        self.driver.delete(None, None, 'id', base.ACCESS,
                           vnf_instance=self.vnf,
                           terminate_vnf_req=object())
        self.vnf.instantiation_state = 'NOT_INSTANTIATED'
        self.driver.delete_wait(None, None, 'id', base.ACCESS,
                                vnf_instance=self.vnf)
        self.assertEqual(({}, {}, {}), (
            self.cloud.servers, self.cloud.ports, self.cloud.server_groups))

    def test_a_network_has_255_virtual_routers(self):
        for number in range(1, 256):
            self.cloud.network.create_port(
                network_id=base.LEFT_NET, name='x', description='of others',
                mac_address='00:00:5e:00:01:%02x' % number)
        with self.assertRaisesRegex(exception.ClickOSError,
                                    'has 255 virtual routers'):
            self.instantiate()

    def test_ipv6_is_refused(self):
        port = base.resource(
            name='virtual-VDU1-left', mac_address='00:00:5e:00:01:01',
            fixed_ips=[{'ip_address': '2001:db8::1'}])
        own = base.resource(name='VDU1-0-left', mac_address='2:0:0:0:0:1',
                            fixed_ips=[{'ip_address': '10.0.0.2'}])
        with self.assertRaisesRegex(exception.ClickOSError,
                                    'virtual-VDU1-left: has an IPv6'):
            pairs.statements('VDU1-0', [pairs.Side(port, own, own)], 'key')


class PackageTest(base.TestCase):

    def refused(self, change, reason):
        vnfd = make_pair(self.package)
        change(vnfd['topology_template']['policies'])
        (self.package / 'Definitions' / 'firewall.yaml').write_text(
            json.dumps(vnfd))
        with self.assertRaisesRegex(exception.ClickOSError, reason):
            loader.load(str(self.package), 'simple')

    def test_a_pair_has_two_guests_at_every_level(self):
        def three(policies):
            policies[-2]['initial']['properties']['initial_delta'] = {
                'number_of_instances': 3}
        self.refused(three, r'a pair has 2 guests at every level, found \[3')
        self.refused(lambda policies: policies.__delitem__(slice(1, None)),
                     r'a pair has 2 guests at every level, found \[1')

    def test_the_image_needs_the_elements_of_pairs(self):
        vnfd = make_pair(self.package)
        settings = vnfd['topology_template']['policies'][0]['configuration']
        settings['properties']['groups'] = {'ip': 'IPFilter'}
        (self.package / 'Definitions' / 'firewall.yaml').write_text(
            json.dumps(vnfd))
        vdu = loader.load(str(self.package), 'simple').vdus['VDU1']
        self.assertEqual({'ip': 'IPFilter', 'ha': 'VRRP'},
                         vdu.configuration.groups)

    def test_only_pairs_are_known(self):
        def other(policies):
            policies[0]['configuration']['properties']['ha'] = 'triple'
        self.refused(other, "ha: expected pair, got 'triple'")

    def test_frames_of_others_have_no_pair(self):
        def transparent(policies):
            policies[0]['configuration']['properties'].update(
                routed=False, transparent=True)
        self.refused(transparent, 'a transparent VNF has no addresses')

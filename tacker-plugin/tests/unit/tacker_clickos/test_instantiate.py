# SPDX-License-Identifier: Apache-2.0
"""Instantiation: ports, servers, states, and what a failure leaves."""

import ipaddress
import json
import os
import types
from unittest import mock

from openstack import exceptions as sdk_exceptions
from tacker import objects

from tacker_clickos import exception
from tacker_clickos import infra_driver
from tacker_clickos import links
from tacker_clickos import ports
from tacker_clickos import state
from tacker_clickos.vnfd import model
from tests.unit.tacker_clickos import base
from tests.unit.tacker_clickos import test_infra_driver


class InstantiateTest(test_infra_driver.DriverTestCase):

    def test_a_server_tells_whose_it_is(self):
        self.instantiate()
        self.assertEqual({'clickos_vnf': base.VNF_ID,
                          'clickos_vnf_name': 'fw'},
                         self.only_server().metadata)

    def test_it_stands_in_for_the_openstack_driver(self):
        self.assertEqual('openstack', self.driver.get_type())
        self.assertEqual('clickos', self.driver.get_name())

    def test_server_ports_and_document(self):
        self.assertEqual('clickos-' + base.VNF_ID, self.instantiate())
        server = self.only_server()
        by_name = {port.name: port for port in self.cloud.ports.values()}
        self.assertEqual(
            [{'port': by_name['VDU1-0-left'].id},
             {'port': by_name['VDU1-0-right'].id}],
            server.wanted['networks'])
        self.assertEqual(('small', 'image', False),
                         (server.wanted['flavor_id'],
                          server.wanted['image_id'],
                          server.wanted['config_drive']))
        document = self.document(server)
        self.assertEqual([['fw.config', 'allow icmp']], document['writes'])
        self.assertIn('$LEFT_MAC fa:16:3e:00:00:01', document['config'])
        self.assertIn('$RIGHT_NET 10.0.2.0/24', document['config'])

    def test_routed_ports_let_any_source_address_pass(self):
        self.instantiate()
        for port in self.cloud.ports.values():
            self.assertEqual([{'ip_address': '0.0.0.0/0'}],
                             port.wanted['allowed_address_pairs'])
            self.assertEqual(['group-0'], port.wanted['security_groups'])
            self.assertEqual(['clickos:routed'], port.tags)
        self.assertEqual(['clickos-vnf'],
                         [group.name for group in self.cloud.groups])
        self.assertEqual(
            {'IPv4', 'IPv6'},
            {call.kwargs['ethertype'] for call in
             self.cloud.network.create_security_group_rule.mock_calls})

    def test_transparent_ports_have_no_port_security(self):
        vnfd = self.package / 'Definitions' / 'firewall.yaml'
        vnfd.write_text(vnfd.read_text().replace('routed: true',
                                                 'transparent: true'))
        self.instantiate()
        for port in self.cloud.ports.values():
            self.assertEqual((False, []),
                             (port.wanted['port_security_enabled'],
                              port.wanted['security_groups']))
            self.assertNotIn('allowed_address_pairs', port.wanted)
            self.assertEqual(['clickos:transparent'], port.tags)

    def test_ports_of_a_hop_of_whole_frames_keep_port_security(self):
        vnfd = self.package / 'Definitions' / 'firewall.yaml'
        vnfd.write_text(vnfd.read_text().replace(
            'routed: true', 'whole_frames: true\n          copies: 2'))
        self.instantiate()
        for port in self.cloud.ports.values():
            self.assertEqual(['clickos:transparent', 'clickos:copies=2'],
                             port.tags)
            self.assertEqual(['group-0'], port.wanted['security_groups'])
            self.assertNotIn('port_security_enabled', port.wanted)
            self.assertNotIn('allowed_address_pairs', port.wanted)

    def relay(self):
        """Let the connection point left be that of a DHCP relay."""
        vnfd = self.package / 'Definitions' / 'firewall.yaml'
        vnfd.write_text(vnfd.read_text().replace(
            'order: 0', 'order: 0, role: dhcp-relay'))

    def test_the_role_of_a_connection_point_is_that_of_its_port(self):
        self.relay()
        self.instantiate()
        roles = {port.name: getattr(port, 'roles', None)
                 for port in self.cloud.ports.values()}
        self.assertEqual({'VDU1-0-left': ['dhcp-server'],
                          'VDU1-0-right': None}, roles)

    def test_a_role_that_the_project_may_not_have(self):
        self.relay()
        answer = self.cloud._api_answer

        def refuse(_id, what, *more):
            if what == 'roles':
                return 403, {'error': {'code': 'forbidden',
                                       'message': 'policy does not allow'}}
            return answer(_id, what, *more)
        self.cloud._api_answer = refuse
        self.assertNothingLeft('port VDU1-0-left', 'role dhcp-server',
                               'policy does not allow')

    def test_tacker_learns_the_resources(self):
        self.instantiate()
        vnfc = self.info.vnfc_resource_info[0]
        self.assertEqual(self.only_server().id,
                         vnfc.compute_resource.resource_id)
        address = vnfc.vnfc_cp_info[0].cp_protocol_info[0].ip_over_ethernet
        self.assertEqual('fa:16:3e:00:00:01', address.mac_address)
        self.assertEqual(['10.0.1.1'], address.ip_addresses[0].addresses)

    def test_the_tenant_sees_properties_and_states(self):
        self.instantiate()
        metadata = self.vnf.vnf_metadata
        self.assertEqual(test_infra_driver.RULES,
                         json.loads(metadata['clickos_properties']))
        self.assertEqual({self.info.vnfc_resource_info[0].id: 'ACTIVE'},
                         json.loads(metadata['clickos_state']))
        self.assertEqual('demo', metadata['tenant'])

    def test_defaults_hold_without_properties(self):
        self.instantiate(base.instantiate_request())
        self.assertEqual([['fw.config', 'deny all']],
                         self.document(self.only_server())['writes'])

    def test_wanted_addresses_reach_neutron(self):
        request = base.instantiate_request()
        config = request.ext_virtual_links[0].ext_cps[0].cp_config[0]
        config.cp_protocol_data[0].ip_over_ethernet = (
            objects.IpOverEthernetAddressData(
                mac_address='fa:16:3e:aa:bb:cc',
                ip_addresses=[objects.instantiate_vnf_req.IpAddressReq(
                    type='IPV4', subnet_id='1',
                    fixed_addresses=['10.0.1.77'])]))
        self.instantiate(request)
        port = next(port for port in self.cloud.ports.values()
                    if port.name == 'VDU1-0-left')
        self.assertEqual('fa:16:3e:aa:bb:cc', port.wanted['mac_address'])
        self.assertEqual([{'subnet_id': '1', 'ip_address': '10.0.1.77'}],
                         port.wanted['fixed_ips'])

    def assertNothingLeft(self, *reasons, request=None):
        with self.assertRaises(exception.ClickOSError) as failed:
            self.instantiate(request)
        for reason in reasons:
            self.assertIn(reason, str(failed.exception))
        self.assertEqual({}, self.cloud.servers)
        self.assertEqual({}, self.cloud.ports)
        self.assertFalse(self.info.instance_id)

    def test_the_guests_message_is_the_error(self):
        self.cloud.fault = ('firewall.click:12:5: unknown element class '
                            '"ToDump"')
        self.assertNothingLeft('VDU1-0-' + base.VNF_ID, self.cloud.fault)

    def test_tacker_knows_the_vnf_before_anything_is_made(self):
        saved = []

        def save(vnf):
            self.reload(vnf)
            saved.append((vnf.instantiated_vnf_info.instance_id,
                          len(self.cloud.ports)))
        self.save.side_effect = save
        self.instantiate()
        self.assertEqual([('clickos-' + base.VNF_ID, 0)], saved)
        self.assertEqual(
            self.only_server().id,
            self.info.vnfc_resource_info[0].compute_resource.resource_id)

    def test_a_host_s_own_reason_is_told_when_none_is_left(self):
        self.cloud.fault = 'Exhausted all hosts available for retrying'
        why = 'ClickOS host: the switch does not answer'
        event = {'event': 'clickos_start', 'details': why}
        other = {'event': 'compute__do_build', 'details': 'a trace'}
        self.cloud.actions = [types.SimpleNamespace(
            request_id='req-1', events=[other, event, dict(event)])]
        self.assertNothingLeft(self.cloud.fault + '; ' + why)

    def test_what_nova_hides_from_a_member_is_asked_of_clickos_api(self):
        self.cloud.fault = 'Exhausted all hosts available for retrying'
        why = 'ClickOS host: the switch does not answer'
        self.cloud.actions = [types.SimpleNamespace(
            request_id='req-1', events=[
                {'event': 'clickos_start', 'result': 'Error',
                 'details': None}] * 2)]
        self.cloud.starts = [{'request_id': 'req-1', 'action': 'create',
                              'result': 'Error', 'finished_at': None,
                              'details': each}
                             for each in (why, why, 'no memory')]
        self.assertNothingLeft(self.cloud.fault + '; ' + why + '; no memory')

    def test_actions_that_nova_does_not_show_hide_no_fault(self):
        self.cloud.fault = 'boom'
        self.cloud.compute.server_actions.side_effect = (
            sdk_exceptions.ForbiddenException())
        self.assertNothingLeft('boom')

    def test_an_error_without_a_fault(self):
        self.cloud.fault = ''
        self.cloud.compute.get_server.side_effect = (
            lambda server_id: mock.Mock(status='ERROR', fault=None)
            if server_id in self.cloud.servers
            else self.cloud._get_server(server_id))
        self.assertNothingLeft('Nova gave the server up and noted no reason')

    def test_a_guest_that_never_starts(self):
        self.patch(infra_driver.guests.servers.time, 'sleep')
        self.cloud.compute.get_server.side_effect = (
            lambda server_id: mock.Mock(status='BUILD')
            if server_id in self.cloud.servers
            else self.cloud._get_server(server_id))
        self.assertNothingLeft('not ACTIVE after 1 s')

    def test_neutron_refuses_a_port(self):
        self.cloud.port_error = 'no more addresses'
        self.assertNothingLeft('port VDU1-0-left: no more addresses')

    def test_the_second_guest_fails(self):
        self.vnf = base.vnf_instance(guests=2)
        create = self.cloud.compute.create_server.side_effect

        def fail_second(**wanted):
            self.cloud.fault = 'boom' if self.cloud.servers else None
            return create(**wanted)
        self.cloud.compute.create_server.side_effect = fail_second
        self.assertNothingLeft('VDU1-1', 'boom')

    def test_a_property_outside_its_constraint(self):
        self.assertNothingLeft(
            "property rules: rule 0: character ',' is not allowed",
            request=base.instantiate_request(
                {'rules': ['allow icmp, allow all']}))

    def test_an_unknown_property(self):
        self.assertNothingLeft(
            'property speed: this VNF has only: rules',
            request=base.instantiate_request({'speed': 1}))

    def test_values_too_long_to_be_healed(self):
        policies = self.package / 'Definitions' / 'firewall.yaml'
        policies.write_text(policies.read_text().replace(
            'max_items: 64', 'max_items: 9000'))
        self.assertNothingLeft(
            'the limit is 524288', request=base.instantiate_request(
                {'rules': ['deny tcp' + ' or tcp' * 27] * 9000}))

    def test_ten_thousand_rules(self):
        policies = self.package / 'Definitions' / 'firewall.yaml'
        policies.write_text(policies.read_text().replace(
            'max_items: 64', 'max_items: 10000'))
        rules = ['deny src host 10.%d.%d.1' % (number // 250, number % 250)
                 for number in range(10000)]
        self.instantiate(request=base.instantiate_request({'rules': rules}))
        (server,) = self.cloud.servers.values()
        self.assertEqual([['fw.config', ', '.join(rules)]],
                         self.document(server)['writes'])

    def test_outputs_are_shown(self):
        self.instantiate()
        self.assertEqual(
            {'VDU1': {'passed': 'passed.count',
                      'received': 'received.count'}},
            json.loads(self.vnf.vnf_metadata['clickos_outputs']))

    def test_a_network_of_ipv6_only(self):
        create = self.cloud.network.create_port.side_effect

        def of_ip6(**wanted):
            port = create(**wanted)
            port.fixed_ips = [{'ip_address': '2001:db8::7',
                               'subnet_id': '6'}]
            return port
        self.cloud.network.create_port.side_effect = of_ip6
        click = self.package / 'Files' / 'firewall.click'
        click.write_text('// $LEFT_IP6 and $RIGHT_NET6')
        self.instantiate()
        (server,) = self.cloud.servers.values()
        config = self.document(server)['config']
        for line in ('$LEFT_IP 0.0.0.0', '$LEFT_IP6 2001:db8::7',
                     '$RIGHT_NET6 10.0.6.0/24'):
            self.assertIn(line, config)

    def test_an_ip_version_that_the_configuration_needs(self):
        vnfd = self.package / 'Definitions' / 'firewall.yaml'
        vnfd.write_text(vnfd.read_text().replace(
            'layer_protocols: [ipv4, ipv6]', 'layer_protocols: [ipv4]'))
        click = self.package / 'Files' / 'firewall.click'
        click.write_text('// $LEFT_IP6')
        self.assertNothingLeft('connection point left: has no IPv6 address')

    def routed_pairs(self, *versions, layers='ipv4, ipv6'):
        """Return the address pairs on a network with such subnets."""
        self.cloud.network.subnets.side_effect = lambda network_id: iter(
            [mock.Mock(spec_set=('ip_version',), ip_version=version)
             for version in versions])
        vnfd = self.package / 'Definitions' / 'firewall.yaml'
        vnfd.write_text(vnfd.read_text().replace(
            'layer_protocols: [ipv4, ipv6]',
            'layer_protocols: [%s]' % layers))
        self.instantiate()
        return [ipaddress.ip_network(pair['ip_address']) for pair in
                list(self.cloud.ports.values())[0].wanted[
                    'allowed_address_pairs']]

    def test_a_routed_vnf_may_send_any_ipv6_where_there_is_some(self):
        pairs = self.routed_pairs(4, 6)
        for address in ('192.0.2.1', '2001:db8::1', 'fd00::1',
                        '64:ff9b::192.0.2.1', '64:ff9b:1::1'):
            address = ipaddress.ip_address(address)
            self.assertTrue(any(address in pair for pair in pairs), address)
        # Neutron refuses multicast, and no router passes the others on.
        for network in ('ff00::/8', 'fe80::/10', '::/127'):
            network = ipaddress.ip_network(network)
            self.assertFalse(any(network.overlaps(pair) for pair in pairs
                                 if pair.version == 6), network)
        self.assertLess(len(pairs), 10)

    def test_no_pair_of_a_version_without_a_subnet(self):
        self.assertEqual([4], [pair.version for pair in self.routed_pairs(4)])

    def test_only_ipv6(self):
        self.assertEqual({6}, {pair.version for pair in self.routed_pairs(6)})

    def test_no_ipv6_for_a_connection_point_without_it(self):
        click = self.package / 'Files' / 'firewall.click'
        click.write_text('Idle;')
        self.assertEqual([4], [pair.version for pair in self.routed_pairs(
            4, 6, layers='ipv4')])

    def test_a_dual_connection_point_may_lack_a_version(self):
        click = self.package / 'Files' / 'firewall.click'
        click.write_text('// $LEFT_IP6 $LEFT_NET6\n' + click.read_text())
        self.instantiate()
        config = self.document(self.only_server())['config']
        self.assertIn('$LEFT_IP6 ::,', config)
        self.assertIn('$LEFT_NET6 ::/128', config)

    def test_a_missing_artifact(self):
        os.unlink(self.package / 'Files' / 'firewall.click')
        self.assertNothingLeft('Files/firewall.click is missing')

    def test_a_connection_point_without_network(self):
        request = base.instantiate_request()
        request.ext_virtual_links = request.ext_virtual_links[:1]
        self.assertNothingLeft('connection point right: extVirtualLinks',
                               request=request)

    def test_a_port_of_the_tenants_own(self):
        self.assertNothingLeft(
            'connection point left: linkPortId cannot be used',
            request=base.instantiate_request(link_port_id='x'))

    def test_an_image_that_is_not_there(self):
        self.cloud.image.images.side_effect = lambda **query: iter([])
        self.assertNothingLeft('image clickos: is neither an active public '
                               'image of Glance nor an active one of the '
                               'project')

    def test_a_flavor_that_is_not_there(self):
        self.cloud.compute.flavors.side_effect = lambda: iter([])
        self.assertNothingLeft('flavor 8 MiB, 1 vCPU: is not in Nova')

    def test_a_network_without_subnet(self):
        create = self.cloud.network.create_port.side_effect

        def without_address(**wanted):
            port = create(**wanted)
            port.fixed_ips = []
            return port
        self.cloud.network.create_port.side_effect = without_address
        self.assertNothingLeft('port VDU1-0-left: has no IP address')

    def test_what_an_interrupted_attempt_left_is_removed(self):
        vdu = model.Vdu('VDU1', 'x', None, 8, 1, ('left',),
                        model.Configuration(
                            file_name='x', text='', routed=False,
                            transparent=False, properties={}))
        ports.create(self.cloud, base.VNF_ID, 'VDU1-0-left',
                     links.Link(base.RIGHT_NET), vdu, 'left',
                     state.Record())
        self.instantiate()
        self.assertEqual(2, len(self.cloud.ports))
        left = next(port for port in self.cloud.ports.values()
                    if port.name == 'VDU1-0-left')
        self.assertEqual(base.LEFT_NET, left.network_id)

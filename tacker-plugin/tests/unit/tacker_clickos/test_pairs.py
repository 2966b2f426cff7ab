# SPDX-License-Identifier: Apache-2.0
"""Pairs of guests: one address, two hosts, a key, and VRRP in front."""

import base64
import copy
import json
import re

from openstack import exceptions as sdk_exceptions
from tacker import objects
import yaml

from tacker_clickos import exception
from tacker_clickos import links
from tacker_clickos import pairs
from tacker_clickos import ports
from tacker_clickos import servers
from tacker_clickos import state
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


def make_pair(package, ha='pair'):
    """Make the firewall's package one of a pair; return its VNFD.

    :param ha: None for two guests that are no pair
    """
    path = package / 'Definitions' / 'firewall.yaml'
    vnfd = yaml.safe_load(path.read_text())
    policies = vnfd['topology_template']['policies']
    properties = policies[0]['configuration']['properties']
    properties.pop('ha', None)
    properties.update({'ha': ha} if ha else {})
    policies[1:] = copy.deepcopy(TWO)
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
        virtual = self.by_name()['virtual.VDU1.left']
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

    def test_the_second_guest_is_asked_for_when_the_first_has_a_host(self):
        create, get = (self.cloud.compute.create_server.side_effect,
                       self.cloud.compute.get_server.side_effect)
        looks = []

        def create_server(**wanted):
            server = create(**wanted)
            self.assertTrue(all(each.host_id for each in
                                self.cloud.servers.values()
                                if each is not server))
            vars(server).update(status='BUILD', host_id='')
            return server

        def get_server(server_id):
            looks.append(server_id)
            if looks.count(server_id) > 2:
                vars(self.cloud.servers[server_id]).update(
                    status='ACTIVE', host_id='host')
            return get(server_id)
        self.cloud.compute.create_server.side_effect = create_server
        self.cloud.compute.get_server.side_effect = get_server
        self.patch(servers.time, 'sleep')
        self.instantiate()
        self.assertEqual(2, len(self.cloud.servers))

    def heal(self):
        """Heal the whole VNF, as Tacker does."""
        self.driver.instantiate_vnf(
            context=None, vnf_instance=self.vnf, vnfd_dict={},
            vim_connection_info=base.vim_connection(),
            instantiate_vnf_req=base.instantiate_request(
                test_infra_driver.RULES),
            grant_response={}, plugin=None,
            vnf_package_path=str(self.package))

    def pair_of_vrrp(self):
        """Let both guests answer as VRRP does; the first one is active."""
        servers = list(self.cloud.servers)

        def read(server_id, handler):
            resigned = [each for each, what in self.told() if what != 'act']
            backup = resigned[-1] if resigned else servers[1]
            ends = '1 2' if server_id == servers[0] else '2 1'
            return {'vrrp.copies': 'connected true\nsent 2\nwaiting 0\n'
                                   'connection %s\n' % ends,
                    'vrrp.state': 'backup' if server_id == backup
                    else 'active'}[handler]
        self.cloud.vrrp = read
        return servers

    def told(self):
        """Return (server, 'resign' or 'act') of requests, in their order."""
        return [(call[1], 'act' if call[0] == 'act' else 'resign')
                for call in self.cloud.calls
                if call[0] == 'act' or 'vrrp.resign' in str(call[-1])]

    def test_an_active_guest_resigns_before_it_begins_again(self):
        self.instantiate()
        first, second = self.pair_of_vrrp()
        self.heal()
        self.assertEqual(
            [(first, 'resign'), (first, 'act'), (second, 'resign'),
             (second, 'act')], self.told())

    def test_a_dead_guest_begins_before_the_one_that_has_the_flows(self):
        self.instantiate()
        first, second = self.pair_of_vrrp()
        self.cloud.servers[second].status = 'SHUTOFF'
        self.heal()
        self.assertEqual([(second, 'act'), (first, 'resign'),
                          (first, 'act')], self.told())

    def test_a_guest_keeps_its_work_if_the_other_one_is_dead(self):
        self.instantiate()
        _first, second = self.pair_of_vrrp()
        self.cloud.refuse[second] = (409, 'not-running', 'has no guest')
        self.heal()
        self.assertNotIn('resign', [what for _id, what in self.told()])

    def allowed(self, name):
        """Return the addresses that a port's guest may use with a MAC."""
        return {(pair['ip_address'], pair['mac_address']) for pair in
                self.by_name()[name].allowed_address_pairs}

    def test_a_heal_keeps_ports_and_key(self):
        self.instantiate()
        before, ports = self.configurations(), set(self.cloud.ports)
        self.heal()
        self.assertEqual(before, self.configurations())
        self.assertEqual(ports, set(self.cloud.ports))

    def test_another_package_makes_a_pair_and_ends_it(self):
        self.instantiate()
        self.cloud.ports[self.by_name()['VDU1-0-left'].id] \
            .allowed_address_pairs.append(
                {'ip_address': '192.0.2.1', 'mac_address': 'own'})
        before = {name: self.allowed(name) for name in self.by_name()}
        make_pair(self.package, ha=None)
        self.vnf.vnfd_id = 'single'
        self.heal()
        self.assertEqual(['VDU1-0-left', 'VDU1-0-right', 'VDU1-1-left',
                          'VDU1-1-right'], sorted(self.by_name()))
        self.assertEqual({('192.0.2.1', 'own')}, self.allowed('VDU1-0-left'))
        self.assertEqual(set(), self.allowed('VDU1-1-right'))
        make_pair(self.package)
        self.vnf.vnfd_id = 'pair'
        self.heal()
        addresses = {name: {ip for ip, _mac in pairs} for name, pairs in
                     before.items()}
        self.assertEqual(len(addresses), len(self.by_name()))
        (virtual,) = [fixed['ip_address'] for fixed in
                      self.by_name()['virtual.VDU1.left'].fixed_ips]
        self.assertEqual(
            {(virtual, '00:00:5e:00:01:01'),
             ('0.0.0.0/0', '00:00:5e:00:01:01'), ('192.0.2.1', 'own')},
            self.allowed('VDU1-0-left'))

    def change(self, network):
        """Connect both guests with another network on the right."""
        self.patch(objects.InstantiateVnfRequest, 'from_vnf_instance',
                   return_value=base.instantiate_request())
        request = objects.ChangeExtConnRequest.obj_from_primitive(
            {'ext_virtual_links': [{
                'id': 'new', 'resource_id': network, 'ext_cps': [{
                    'cpd_id': 'right', 'cp_config': [{'cp_protocol_data': [
                        {'layer_protocol': 'IP_OVER_ETHERNET'}]}]}]}]},
            context=None)
        self.driver.change_ext_conn_vnf(
            context=None, vnf_instance=self.vnf, vnf_dict={},
            vim_connection_info=base.vim_connection(),
            change_ext_conn_req=request)

    def test_a_pair_goes_to_another_network_with_its_address(self):
        self.instantiate()
        left = self.by_name()['virtual.VDU1.left']
        self.change('other')
        self.assertEqual(6, len(self.by_name()))
        for name, port in self.by_name().items():
            self.assertEqual(
                'other' if name.endswith('right') else base.LEFT_NET,
                port.network_id)
        self.assertIs(left, self.by_name()['virtual.VDU1.left'])
        right = self.by_name()['virtual.VDU1.right']
        ips = [right.fixed_ips[0]['ip_address'], '0.0.0.0/0']
        for guest in 'VDU1-0', 'VDU1-1':
            self.assertEqual({(ip, right.mac_address) for ip in ips},
                             self.allowed(guest + '-right'))
        for text in self.configurations().values():
            self.assertIn('$RIGHT_IP %s,' % ips[0], text)

    def test_a_network_that_neutron_refuses_changes_nothing(self):
        self.instantiate()
        before, create = dict(self.cloud.ports), \
            self.cloud.network.create_port.side_effect

        def only_virtual(**wanted):
            if not wanted['name'].startswith('virtual.'):
                raise sdk_exceptions.BadRequestException(details='no room')
            return create(**wanted)
        self.cloud.network.create_port.side_effect = only_virtual
        with self.assertRaisesRegex(exception.ResourceNotUsable, 'no room'):
            self.change('other')
        self.assertEqual(before, self.cloud.ports)
        self.assertEqual(2, len(self.cloud.servers))

    def test_two_pairs_at_the_same_time_have_two_numbers(self):
        has_mac, create = pairs.own.has_mac, \
            self.cloud.network.create_port.side_effect

        def taken(**wanted):
            """Another pair takes each number just before its first use."""
            if wanted.get('mac_address', '').endswith(':01') \
                    and not has_mac(self.cloud, wanted['network_id'],
                                    wanted['mac_address']):
                create(**dict(wanted, name='x', description='of others'))
                raise sdk_exceptions.ConflictException(details='in use')
            return create(**wanted)
        self.cloud.network.create_port.side_effect = taken
        self.instantiate()
        self.assertEqual('00:00:5e:00:01:02',
                         self.by_name()['virtual.VDU1.left'].mac_address)

    def test_a_refusal_of_neutron_is_told_at_once(self):
        self.cloud.port_error = 'disallowed by policy'
        self.cloud.network.create_port.reset_mock()
        with self.assertRaisesRegex(exception.ResourceNotUsable, 'by policy'):
            self.instantiate()
        self.assertEqual(1, self.cloud.network.create_port.call_count)

    def test_the_mac_address_of_a_pair_is_its_number_s(self):
        request = base.instantiate_request(test_infra_driver.RULES)
        data, = request.ext_virtual_links[0].ext_cps[0].cp_config[
            0].cp_protocol_data
        data.ip_over_ethernet = objects.IpOverEthernetAddressData(
            mac_address='fa:16:3e:00:00:99')
        with self.assertRaisesRegex(exception.ResourceNotUsable,
                                    'left: .*leave macAddress out'):
            self.instantiate(request)
        self.assertEqual({}, self.cloud.ports)

    def test_no_vdu_has_a_virtual_address_by_its_name(self):
        for name in ('virtual-0-left', 'virtual-VDU1-left'):
            self.assertFalse(pairs.is_virtual(name))
        self.assertTrue(pairs.is_virtual(pairs.virtual_name('VDU1', 'left')))

    def test_the_image_of_a_pair_has_its_elements(self):
        """The program reads the text, in front of which they stand."""
        base.use_checker(self)
        self.cloud.images = [
            base.image('core', 'clickos', 'device,standard'),
            base.image('full', 'clickos-full', 'device,standard,ha',
                       tags=['clickos'])]
        self.instantiate()
        self.assertEqual({'full'}, {
            server.wanted['image_id']
            for server in self.cloud.servers.values()})

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

    def connect(self, *versions):
        """Give both networks subnets of these IP versions."""
        for network_id in (base.LEFT_NET, base.RIGHT_NET):
            self.cloud.networks[network_id] = base.resource(
                mtu=1500, project_id='of the operator', subnets=[
                    base.resource(id='v%d' % version, ip_version=version,
                                  ipv6_address_mode=None)
                    for version in versions])

    def test_addresses_of_ipv6_go_with_those_of_ipv4(self):
        self.connect(6, 4)
        self.instantiate()
        ports, text = self.by_name(), self.configurations()['VDU1-0']
        virtual = ports['virtual.VDU1.left']
        self.assertEqual('00:00:5e:00:01:01', virtual.mac_address)
        own, peer = ports['VDU1-0-left'], ports['VDU1-1-left']
        self.assertIn('VRRP(1 %s %s %s %s %s %s,' % (
            own.fixed_ips[0]['ip_address'], own.mac_address,
            peer.fixed_ips[0]['ip_address'], peer.mac_address,
            *(each['ip_address'] for each in virtual.fixed_ips)), text)
        self.assertIn('$LEFT_IP6 2001:db8:1::', text)

    def test_a_pair_of_ipv6_has_link_local_addresses(self):
        self.connect(6)
        pairs_of = self.ipv6_pair()
        virtual = self.by_name()['virtual.VDU1.left']
        self.assertEqual('00:00:5e:00:02:01', virtual.mac_address)
        (ip,) = [each['ip_address'] for each in virtual.fixed_ips]
        own, peer = [self.by_name()['VDU1-%d-left' % n].mac_address
                     for n in (0, 1)]
        self.assertEqual('1 %s %s %s %s fe80::200:5eff:fe00:201 %s' % (
            ports.link_local(own), own, ports.link_local(peer), peer, ip),
            pairs_of)
        self.assertEqual('fe80::f816:3eff:fe00:2',
                         ports.link_local('fa:16:3e:00:00:02'))
        self.assertEqual(
            {(address, virtual.mac_address) for address in (
                ip, ports.link_local(peer), '2000::/3', 'fc00::/7',
                '64:ff9b::/32')},
            self.allowed('VDU1-1-left'))

    def ipv6_pair(self):
        """Reserve the ports of a pair; return the side that it has."""
        link = links.Link(base.LEFT_NET)
        virtual = pairs.reserve(self.cloud, 'id', 'virtual.VDU1.left', link)
        vdu = loader.load(str(self.package), 'simple').vdus['VDU1']
        own, peer = [ports.create(
            self.cloud, 'id', 'VDU1-%d-left' % n, link, vdu, 'left',
            state.Record(), virtual) for n in (0, 1)]
        text = pairs.statements('VDU1-0', [pairs.Side(virtual, own, peer)],
                                'key')
        return text.partition('VRRP(')[2].partition(',')[0]

    def end_points(self):
        """Let the guests forward nothing."""
        package = self.package / 'Definitions' / 'firewall.yaml'
        vnfd = yaml.safe_load(package.read_text())
        settings = vnfd['topology_template']['policies'][0]['configuration']
        settings['properties']['routed'] = False
        package.write_text(json.dumps(vnfd))

    def test_an_end_point_advertises_from_its_own_address_alone(self):
        self.end_points()
        self.instantiate()
        virtual = self.by_name()['virtual.VDU1.left']
        for name in 'VDU1-0-left', 'VDU1-1-left':
            own = self.by_name()[name].fixed_ips[0]['ip_address']
            self.assertEqual(
                {(virtual.fixed_ips[0]['ip_address'], virtual.mac_address),
                 (own, virtual.mac_address)}, self.allowed(name))

    def test_an_end_point_whose_own_address_is_of_another_subnet(self):
        """Neutron chooses it among all subnets of the network."""
        self.end_points()
        self.instantiate()
        port = self.by_name()['VDU1-0-left']
        port.fixed_ips = [{'ip_address': '192.0.2.7', 'subnet_id': 'other'}]
        self.heal()
        self.assertIn('192.0.2.7', dict(self.allowed('VDU1-0-left')))

    def test_no_pair_of_addresses_is_there_twice(self):
        """Neutron refuses a port with equal ones."""
        self.end_points()
        create = self.cloud.network.create_port.side_effect

        def of_two(**wanted):
            port = create(**wanted)
            if wanted['name'].startswith('virtual.'):
                port.fixed_ips += [{'ip_address': '10.0.1.99',
                                    'subnet_id': port.fixed_ips[0][
                                        'subnet_id']}]
            return port
        self.cloud.network.create_port.side_effect = of_two
        self.instantiate()
        found = [(pair['ip_address'], pair['mac_address']) for pair in
                 self.by_name()['VDU1-0-left'].wanted[
                     'allowed_address_pairs']]
        self.assertEqual(sorted(set(found)), sorted(found))

    def test_a_network_without_a_subnet_has_no_pair(self):
        self.connect()
        self.cloud.network.create_port.reset_mock()
        with self.assertRaisesRegex(exception.ResourceNotUsable,
                                    'has a network without a subnet'):
            self.instantiate()
        self.assertFalse(self.cloud.network.create_port.called)

    def test_the_number_is_of_the_version_that_neutron_gives(self):
        """Some subnets are for routers alone, which a request cannot see."""
        self.connect(4, 6)
        create = self.cloud.network.create_port.side_effect

        def of_ipv6(**wanted):
            port = create(**wanted)
            port.fixed_ips = [each for each in port.fixed_ips
                              if ':' in each['ip_address']]
            return port
        self.cloud.network.create_port.side_effect = of_ipv6
        self.assertTrue(self.ipv6_pair().startswith('1 fe80::'))
        (virtual,) = [port for port in self.cloud.ports.values()
                      if pairs.is_virtual(port.name)]
        self.assertEqual('00:00:5e:00:02:01', virtual.mac_address)

    def test_a_running_pair_stays_when_its_network_gets_ipv6(self):
        self.instantiate()
        self.cloud.subnet = base.resource(
            id='v6', ip_version=6, ipv6_address_mode=None)
        self.heal()
        self.assertEqual(2, len(self.cloud.servers))

    def test_a_guest_without_an_address_for_advertisements(self):
        port = base.resource(
            name='virtual.VDU1.left', mac_address='00:00:5e:00:01:01',
            fixed_ips=[{'ip_address': '10.0.0.1'}])
        own = base.resource(name='VDU1-0-left', mac_address='2:0:0:0:0:1',
                            fixed_ips=[{'ip_address': '2001:db8::1'}])
        with self.assertRaisesRegex(exception.ClickOSError,
                                    'VDU1-0-left: has no IPv4 address'):
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

    def test_the_other_vdus_may_scale(self):
        vnfd = make_pair(self.package)
        topology = vnfd['topology_template']
        nodes, policies = topology['node_templates'], topology['policies']
        for name in [name for name, node in nodes.items() if name == 'VDU1'
                     or 'VDU1' in json.dumps(node.get('requirements', ''))]:
            nodes[name.replace('VDU1', 'VDU2') if name == 'VDU1'
                  else name + '2'] = json.loads(json.dumps(
                      nodes[name]).replace('VDU1', 'VDU2'))
        single = copy.deepcopy(policies[0])
        del single['configuration']['properties']['ha']
        single['configuration']['targets'] = ['VDU2']
        aspects = policies[1]['scaling_aspects']['properties']['aspects']
        aspects['more'] = {'name': 'more', 'description': 'of VDU2',
                           'max_scale_level': 1, 'step_deltas': ['one']}
        policies[-1]['levels']['properties']['levels']['pair'][
            'scale_info']['more'] = {'scale_level': 0}
        for policy in copy.deepcopy(policies[2:4]):
            ((name, body),) = policy.items()
            body['targets'] = ['VDU2']
            body['properties'].update({'aspect': 'more'} if name == 'deltas'
                                      else {'initial_delta': {
                                          'number_of_instances': 1}})
            policies.append({name + '2': body})
        policies.append({'single': single['configuration']})
        (self.package / 'Definitions' / 'firewall.yaml').write_text(
            json.dumps(vnfd))
        flavour = loader.load(str(self.package), 'simple')
        self.assertEqual({'VDU1': True, 'VDU2': False}, {
            name: vdu.configuration.pair
            for name, vdu in flavour.vdus.items()})

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

# SPDX-License-Identifier: Apache-2.0
"""Scaling of a VNF, in the order of Tacker's calls."""

import copy
import json
import types

from tacker import objects
from tacker.vnflcm import utils as vnflcm_utils
import yaml

from tacker_clickos import exception
from tacker_clickos import state
from tacker_clickos.vnfd import loader
from tests.unit.tacker_clickos import base
from tests.unit.tacker_clickos import test_infra_driver

ASPECT = 'capacity'


class ScaleTestCase(test_infra_driver.DriverTestCase):

    def setUp(self):
        super().setUp()
        self.patch(objects.VnfInstance, 'get_by_id',
                   side_effect=lambda *_: copy.deepcopy(self.vnf))
        self.patch(vnflcm_utils, '_get_vim')
        request = base.instantiate_request()
        self.start(request)
        self.vnf.vim_connection_info = [base.vim_connection()]

    def start(self, request):
        self.vnfd_dict = {'attributes': {}}
        self.info.additional_params = request.additional_params
        self.info.ext_cp_info = vnflcm_utils._set_ext_cp_info(
            request, self.info)
        self.info.ext_virtual_link_info = (
            vnflcm_utils._set_ext_virtual_link_info(
                request, self.info.ext_cp_info))
        self.info.vnf_virtual_link_resource_info = (
            vnflcm_utils._build_vnf_virtual_link_resource_info(
                {}, request, self.info.vnfc_resource_info, 'vim'))
        self.driver.instantiate_vnf(
            context=None, vnf_instance=self.vnf, vnfd_dict=self.vnfd_dict,
            vim_connection_info=base.vim_connection(),
            instantiate_vnf_req=request, grant_response={}, plugin=None,
            vnf_package_path=str(self.package))
        self.vnf.instantiation_state = 'INSTANTIATED'

    def operation(self, kind, level, before):
        return types.SimpleNamespace(
            request=objects.ScaleVnfRequest(
                type=kind, aspect_id=ASPECT, number_of_steps=1,
                additional_params={'is_reverse': 'False'}),
            vnf_info={'id': base.VNF_ID, 'policy_name': ASPECT,
                      'after_scale_level': level, 'scale_level': before})

    def common(self):
        return {'plugin': None, 'auth_attr': dict(base.ACCESS),
                'region_name': None, 'context': None}

    def servers(self, vnf_info):
        return self.driver.get_scale_ids(vnf_dict=vnf_info, **self.common())

    def carry_out(self, operation):
        policy = {'name': ASPECT, 'vnf': operation.vnf_info}
        self.driver.scale(policy=policy, **self.common())
        self.driver.scale_wait(policy=policy, last_event_id=None,
                               **self.common())

    def record(self, operation):
        self.driver.scale_resource_update(
            context=None, vnf_instance=self.vnf, vnf_info=operation.vnf_info,
            scale_vnf_request=operation.request,
            vim_connection_info=base.vim_connection())

    def out(self, level=1, before=0):
        operation = self.operation('SCALE_OUT', level, before)
        self.carry_out(operation)
        self.record(operation)
        return operation

    def names(self):
        return sorted(server.name[:6] for server in
                      self.cloud.servers.values())

    def recorded(self):
        return [state.name(vnfc) for vnfc in self.info.vnfc_resource_info]


class ScaleTest(ScaleTestCase):

    def test_tacker_learns_how_far_it_scales(self):
        group = json.loads(self.vnfd_dict['attributes']['scale_group'])
        self.assertEqual(
            {ASPECT: {'vdu': ['VDU1'], 'num': 1, 'maxLevel': 3,
                      'initialLevel': 0, 'initialNum': 1, 'default': 1}},
            group['scaleGroupDict'])
        (status,) = self.vnfd_dict['scale_status']
        self.assertEqual((ASPECT, 0), (status.aspect_id, status.scale_level))

    def test_out_adds_guests_with_the_values_in_force(self):
        state.set_param(self.info, state.PROPERTIES, {'rules': ['allow udp']})
        operation = self.operation('SCALE_OUT', 2, 0)
        before = self.servers(operation.vnf_info)
        self.carry_out(operation)
        self.carry_out(operation)    # Tacker's second step
        self.assertEqual(3, len(self.servers(operation.vnf_info)))
        self.record(operation)
        self.assertEqual(['VDU1-0', 'VDU1-1', 'VDU1-2'], self.names())
        self.assertEqual(['VDU1-0', 'VDU1-1', 'VDU1-2'], self.recorded())
        self.assertEqual(3, len(self.info.vnfc_info))
        self.assertEqual(1, len(before))
        for server in self.cloud.servers.values():
            if server.id not in before:
                self.assertEqual([['fw.config', 'allow udp']],
                                 self.document(server)['writes'])
        for link in self.info.vnf_virtual_link_resource_info:
            self.assertEqual(
                3, len([port for port in link.vnf_link_ports
                        if port.resource_handle.resource_id
                        in self.cloud.ports]))

    def test_a_failed_step_leaves_nothing_and_a_retry_finishes(self):
        self.cloud.fault = 'no memory'
        operation = self.operation('SCALE_OUT', 1, 0)
        with self.assertRaisesRegex(exception.GuestFailed, 'no memory'):
            self.carry_out(operation)
        self.record(operation)
        self.assertEqual((['VDU1-0'], 2), (self.names(),
                                           len(self.cloud.ports)))
        self.assertEqual(['VDU1-0'], self.recorded())
        self.cloud.fault = None
        self.out()
        self.assertEqual(['VDU1-0', 'VDU1-1'], self.recorded())

    def test_what_a_killed_conductor_left_is_not_doubled(self):
        self.carry_out(self.operation('SCALE_OUT', 1, 0))
        self.out()
        self.assertEqual(['VDU1-0', 'VDU1-1'], self.names())
        self.assertEqual(4, len(self.cloud.ports))

    def test_in_removes_the_last_with_its_ports_and_state(self):
        self.out(level=2)
        operation = self.operation('SCALE_IN', 1, 2)
        ids, names, _group, stay = self.driver.get_scale_in_ids(
            vnf_dict=operation.vnf_info, is_reverse=None, number_of_steps=1,
            **self.common())
        self.assertEqual((['VDU1-2'], 2), (names, stay))
        self.carry_out(operation)
        self.record(operation)
        self.assertEqual(['VDU1-0', 'VDU1-1'], self.names())
        self.assertEqual(['VDU1-0', 'VDU1-1'], self.recorded())
        self.assertEqual(4, len(self.cloud.ports))
        states = state.state_ids(self.vnf)
        self.assertEqual({'VDU1-0', 'VDU1-1'}, set(states))
        self.assertEqual(set(states.values()), set(self.cloud.desired))

    def test_a_rollback_removes_what_a_scale_out_made(self):
        self.out()
        operation = self.operation('SCALE_OUT', 0, 0)
        ids, names, _group = self.driver.get_rollback_ids(
            vnf_dict=operation.vnf_info, aspect_id=ASPECT, **self.common())
        self.assertEqual((1, ['VDU1-1']), (len(ids), names))
        self.driver.scale_in_reverse(
            vnf_info=operation.vnf_info, scale_vnf_request=operation.request,
            scale_name_list=names, grp_id=None, vnf_instance=self.vnf,
            **self.common())
        self.driver.scale_update_wait(vnf_info=operation.vnf_info,
                                      **self.common())
        self.record(operation)
        self.assertEqual((['VDU1-0'], ['VDU1-0']),
                         (self.names(), self.recorded()))

    def test_a_fixed_address_stays_with_the_first_guest(self):
        self.cloud.servers.clear()
        self.cloud.ports.clear()
        self.vnf = base.vnf_instance(guests=2)
        request = base.instantiate_request()
        config = request.ext_virtual_links[0].ext_cps[0].cp_config[0]
        config.cp_protocol_data[0].ip_over_ethernet = (
            objects.IpOverEthernetAddressData(
                mac_address='fa:16:3e:00:00:99',
                ip_addresses=[objects.instantiate_vnf_req.IpAddressReq(
                    type='IPV4', subnet_id='1',
                    fixed_addresses=['10.0.1.9'])]))
        self.start(request)
        wanted = {port.name: (port.wanted.get('mac_address'),
                              port.wanted.get('fixed_ips'))
                  for port in self.cloud.ports.values()}
        self.assertEqual(
            ('fa:16:3e:00:00:99',
             [{'subnet_id': '1', 'ip_address': '10.0.1.9'}]),
            wanted['VDU1-0-left'])
        self.assertEqual((None, [{'subnet_id': '1'}]), wanted['VDU1-1-left'])


class ChainsTest(ScaleTestCase):
    """A hop's guests share its flows, also those that come later."""

    def setUp(self):
        super().setUp()
        by_name = {port.name: port.id for port in self.cloud.ports.values()}
        self.pairs = {'p0': types.SimpleNamespace(
            id='p0', ingress=by_name['VDU1-0-left'],
            egress=by_name['VDU1-0-right'])}
        self.group = types.SimpleNamespace(id='g', port_pairs=['p0'])
        network = self.cloud.network
        replaced = {
            'sfc_port_pairs': lambda: list(self.pairs.values()),
            'sfc_port_pair_groups': lambda: [self.group],
            'create_sfc_port_pair': self.create_pair,
            'update_sfc_port_pair_group': self.update_group,
            'delete_sfc_port_pair':
                lambda key, ignore_missing: self.pairs.pop(key)}
        for name, effect in replaced.items():
            method = getattr(network, name)
            method.side_effect = effect
            self.addCleanup(setattr, method, 'side_effect', None)

    def create_pair(self, **values):
        pair = types.SimpleNamespace(id='p%d' % len(self.pairs), **values)
        self.pairs[pair.id] = pair
        return pair

    def update_group(self, _group, port_pairs):
        self.group.port_pairs = port_pairs

    def test_a_new_guest_joins_the_hop_and_leaves_it(self):
        self.out()
        self.assertEqual(['p0', 'p1'], self.group.port_pairs)
        by_name = {port.name: port.id for port in self.cloud.ports.values()}
        self.assertEqual(
            (by_name['VDU1-1-left'], by_name['VDU1-1-right']),
            (self.pairs['p1'].ingress, self.pairs['p1'].egress))
        self.carry_out(self.operation('SCALE_IN', 0, 1))
        self.assertEqual((['p0'], ['p0']),
                         (self.group.port_pairs, list(self.pairs)))


class FlowsTest(ScaleTestCase):
    """A guest that goes gives its flows to those that stay."""

    def setUp(self):
        super().setUp()
        self.out(level=2)
        self.ids = {server.name[:6]: server.id
                    for server in self.cloud.servers.values()}
        self.cloud.calls.clear()

    def given(self):
        """Return who gave flows to whom."""
        names = {key: name for name, key in self.ids.items()}
        calls = [call for call in self.cloud.calls if 'flows' in call]
        return [(names[server_id], [names[key] for key in json['to']])
                for _method, server_id, _what, json in calls]

    def test_before_and_after_it_leaves_its_chains(self):
        def leave():
            seen.append(len(self.given()))
            return []
        seen, network = [], self.cloud.network
        network.sfc_port_pairs.side_effect = leave
        self.addCleanup(setattr, network.sfc_port_pairs, 'side_effect', None)
        self.carry_out(self.operation('SCALE_IN', 1, 2))
        self.assertEqual([('VDU1-2', ['VDU1-0', 'VDU1-1'])] * 2,
                         self.given())
        self.assertEqual(1, seen[0])

    def test_none_goes_to_a_guest_that_goes_too(self):
        self.carry_out(self.operation('SCALE_IN', 0, 2))
        self.assertEqual([('VDU1-1', ['VDU1-0']), ('VDU1-2', ['VDU1-0'])] * 2,
                         self.given())
        self.assertEqual(['VDU1-0'], self.names())

    def test_a_dead_guest_goes_all_the_same(self):
        self.cloud.refuse[self.ids['VDU1-2']] = (409, 'dead-guest', 'dead')
        self.carry_out(self.operation('SCALE_IN', 1, 2))
        self.assertEqual(1, len(self.given()), 'no second try')
        self.assertEqual(['VDU1-0', 'VDU1-1'], self.names())

    def test_scale_out_gives_nothing(self):
        self.carry_out(self.operation('SCALE_OUT', 3, 2))
        self.assertEqual([], self.given())


class VnfdTest(base.TestCase):
    """The reader takes what Tacker can count, and refuses the rest."""

    def setUp(self):
        super().setUp()
        self.path = self.package / 'Definitions' / 'firewall.yaml'
        self.vnfd = yaml.safe_load(self.path.read_text())
        self.policies = {
            name: policy for entry in
            self.vnfd['topology_template']['policies']
            for name, policy in entry.items()}

    def load(self):
        self.vnfd['topology_template']['policies'] = [
            {name: policy} for name, policy in self.policies.items()]
        self.path.write_text(json.dumps(self.vnfd))
        return loader.load(str(self.package), 'simple').scaling

    def properties(self, name):
        return self.policies[name]['properties']

    def assertRefused(self, *words):
        with self.assertRaises(exception.VnfdInvalid) as refused:
            self.load()
        for word in words:
            self.assertIn(word, str(refused.exception))

    def test_levels(self):
        scaling = self.load()
        self.assertEqual(({'VDU1': 1}, {'VDU1': 2}),
                         (scaling.guests(), scaling.guests('large')))
        self.assertEqual(['VDU1-0', 'VDU1-1'],
                         scaling.aspects[ASPECT].names(1))

    def test_a_vnf_that_does_not_scale(self):
        self.policies = {'configuration': self.policies['configuration']}
        self.assertEqual(({}, {}), (self.load().aspects,
                                    self.load().guests()))

    def test_policies_that_are_missing(self):
        for name, words in (
                ('capacity_deltas', 'found 0'),
                ('capacity_initial', 'VDU1 has no policy of type'),
                ('levels', 'InstantiationLevels, found 0')):
            kept = self.policies.pop(name)
            self.assertRefused('Definitions/firewall.yaml', words)
            self.policies[name] = kept

    def test_steps_of_two_sizes(self):
        self.properties('capacity_deltas')['deltas']['two'] = {
            'number_of_instances': 2}
        aspect = self.properties('scaling_aspects')['aspects'][ASPECT]
        aspect['step_deltas'] = ['one', 'two']
        self.assertRefused('capacity_deltas', 'one size', '[1, 2]')
        aspect['step_deltas'] = ['three']
        self.assertRefused("delta three: expected 0 to 64, got 'None'")
        del aspect['step_deltas']
        self.assertRefused('no step_deltas')

    def test_numbers_out_of_range(self):
        aspect = self.properties('scaling_aspects')['aspects'][ASPECT]
        for value in (-1, 65, 'x', True, None):
            aspect['max_scale_level'] = value
            self.assertRefused('max_scale_level: expected 0 to 64')
        aspect['max_scale_level'] = 64
        self.assertRefused('guests of VDU1 at level 64', "got '65'")

    def test_levels_that_do_not_fit(self):
        levels = self.properties('levels')
        levels['levels']['small']['scale_info'] = {'other': {}}
        self.assertRefused('level small', "name the aspects ['capacity']")
        levels['levels']['small']['scale_info'] = {
            ASPECT: {'scale_level': 4}}
        self.assertRefused('level small: capacity: level 4, the limit is 3')
        levels['levels']['small']['scale_info'] = {
            ASPECT: {'scale_level': 0}}
        levels['default_level'] = 'none'
        self.assertRefused("default_level 'none' is not one of its levels")

    def test_numbers_per_vdu_agree_with_the_steps(self):
        self.policies['numbers'] = {
            'type': 'tosca.policies.nfv.VduInstantiationLevels',
            'targets': ['VDU1'], 'properties': {'levels': {
                'large': {'number_of_instances': 2}}}}
        self.assertEqual({'VDU1': 2}, self.load().guests('large'))
        self.properties('numbers')['levels']['large'] = {
            'number_of_instances': 3}
        self.assertRefused('numbers: level large: VDU1: number_of_instances '
                           'is 3, the steps make 2')

    def test_targets_that_do_not_exist(self):
        self.policies['capacity_deltas']['targets'] = ['VDU9']
        self.assertRefused('capacity_deltas: target VDU9 is no VDU')

# SPDX-License-Identifier: Apache-2.0
"""A VNFD is a tenant's file: each fault in it is named."""

import copy
import json
import os

import yaml

from tacker_clickos import exception
from tacker_clickos.vnfd import loader
from tests.unit.tacker_clickos import base


class LoaderTest(base.TestCase):

    def setUp(self):
        super().setUp()
        self.path = self.package / 'Definitions' / 'firewall.yaml'
        self.vnfd = yaml.safe_load(self.path.read_text())
        nodes = self.vnfd['topology_template']['node_templates']
        self.vdu, self.nodes = nodes['VDU1'], nodes
        policy = self.vnfd['topology_template']['policies'][0]
        self.settings = policy['configuration']['properties']
        self.rules = self.settings['properties']['rules']

    def load(self):
        self.path.write_text(json.dumps(self.vnfd))
        return loader.load(str(self.package), 'simple').vdus

    def assertRefused(self, *reasons):
        with self.assertRaises(exception.ClickOSError) as refused:
            self.load()
        for reason in reasons:
            self.assertIn(reason, str(refused.exception))

    def test_the_firewall(self):
        vdu = self.load()['VDU1']
        self.assertEqual(('left', 'right'), vdu.cps)
        self.assertEqual(('clickos', None, 8, 1),
                         (vdu.image, vdu.flavor, vdu.memory_mib, vdu.vcpus))
        self.assertTrue(vdu.configuration.routed)
        self.assertEqual('firewall.click', vdu.configuration.file_name)
        self.assertEqual('fw.config',
                         vdu.configuration.properties['rules'].handler)

    def test_connection_points_go_by_order_not_by_name(self):
        self.nodes['right']['properties']['order'] = 0
        self.nodes['left']['properties']['order'] = 1
        self.assertEqual(('right', 'left'), self.load()['VDU1'].cps)

    def test_flavor_by_name(self):
        compute = self.vdu['capabilities']['virtual_compute']['properties']
        compute['requested_additional_capabilities'] = {'properties': {
            'requested_additional_capability_name': 'm1.click'}}
        self.assertEqual('m1.click', self.load()['VDU1'].flavor)

    def test_routed_and_transparent(self):
        self.settings['transparent'] = True
        self.assertRefused('routed and transparent exclude each other')
        self.settings['routed'] = False
        self.assertTrue(self.load()['VDU1'].configuration.transparent)
        self.settings['transparent'] = 'yes'
        self.assertRefused("transparent: expected true or false, got 'yes'")

    def test_whole_frames_and_copies(self):
        self.assertEqual(1, self.load()['VDU1'].configuration.copies)
        self.settings.update(whole_frames=True, copies=16)
        configuration = self.load()['VDU1'].configuration
        self.assertTrue(configuration.whole_frames)
        self.assertEqual(16, configuration.copies)
        for wrong in (0, 17, True, '2', 1.5):
            self.settings['copies'] = wrong
            self.assertRefused('copies: expected a whole number of 1 to 16')

    def test_roles_and_versions_of_connection_points(self):
        properties = self.nodes['left']['properties']
        point = self.load()['VDU1'].point('left')
        self.assertEqual(((4, 6), None), (point.versions, point.role))
        for role, wanted in (('dhcp-relay', 'dhcp-server'),
                             ('dhcp-server', 'dhcp-server'), ('leaf', None)):
            properties.update(role=role, layer_protocols=[
                'ethernet', 'ipv6', 'ipv4'])
            point = self.load()['VDU1'].point('left')
            self.assertEqual(((4, 6), wanted), (point.versions, point.role))
        properties['role'] = 'router'
        self.assertRefused('Definitions/firewall.yaml: left: role: expected '
                           "one of dhcp-server, dhcp-relay, root, leaf, got "
                           "'router'")

    def test_missing_artifact_names_the_file(self):
        os.unlink(self.package / 'Files' / 'firewall.click')
        self.assertRefused('Definitions/firewall.yaml: VDU1: configuration',
                           'artifact Files/firewall.click is missing')

    def test_artifact_outside_the_package(self):
        self.vdu['artifacts']['click']['file'] = '../../../etc/passwd'
        self.assertRefused('../../../etc/passwd is outside the package')

    def test_artifact_that_is_a_link_to_outside(self):
        path = self.package / 'Files' / 'firewall.click'
        path.unlink()
        path.symlink_to('/etc/hostname')
        self.assertRefused('is outside the package')

    def test_artifact_of_another_type(self):
        self.vdu['artifacts']['click']['type'] = 'tosca.artifacts.File'
        self.assertRefused("no artifact 'click' of type clickos.artifacts")

    def test_artifact_too_long(self):
        path = self.package / 'Files' / 'firewall.click'
        path.write_bytes(b'/' * 983041)
        self.assertRefused('firewall.click is 983041 bytes long, the limit is '
                           '983040')

    def test_artifact_not_text(self):
        (self.package / 'Files' / 'firewall.click').write_bytes(b'\xff\xfe')
        self.assertRefused('firewall.click: is not UTF-8 text')

    def test_a_management_driver_that_was_changed(self):
        path = self.package / 'Scripts' / 'mgmt_driver.py'
        path.write_text(path.read_text() + '\n')
        self.assertRefused('Definitions/firewall.yaml: VNF: artifact '
                           'mgmt_driver.py is not the installed')
        path.unlink()
        self.assertRefused('artifact mgmt_driver.py is missing')

    def test_a_management_driver_of_another(self):
        operations = self.nodes['VNF']['interfaces']['Vnflcm']
        for implementation in ('vnflcm_noop', {'primary': 'clickos_mgmt',
                                               'dependencies': ['x']}):
            operations['heal_start'] = {'implementation': implementation}
            self.assertRefused('heal_start can be implemented by '
                               'clickos_mgmt only')

    def test_no_policy(self):
        self.vnfd['topology_template']['policies'] = []
        found = self.load()['VDU1']
        self.assertEqual(('firewall.click', {}),
                         (found.configuration.file_name,
                          found.configuration.properties))
        artifacts = self.nodes['VDU1']['artifacts']
        artifacts['other'] = dict(artifacts['click'])
        self.assertRefused('VDU1: no policy of type clickos.policies',
                           'it has 2 artifacts')

    def test_two_policies(self):
        policies = self.vnfd['topology_template']['policies']
        policies.append({'other': copy.deepcopy(
            policies[0]['configuration'])})
        self.assertRefused('other: VDU1 has another')

    def test_unknown_flavour(self):
        with self.assertRaisesRegex(exception.VnfdInvalid,
                                    "no file has the flavour 'big'"):
            loader.load(str(self.package), 'big')

    def test_not_yaml(self):
        self.path.write_text('a: [')
        with self.assertRaisesRegex(exception.VnfdInvalid, 'firewall.yaml'):
            loader.load(str(self.package), 'simple').vdus

    def test_nodes_that_are_no_maps(self):
        for value in ('x', 7, ['y']):
            self.nodes['odd'] = value
            self.assertRefused(
                'Definitions/firewall.yaml: odd: expected a map')

    def test_memory_that_is_no_size(self):
        compute = self.vdu['capabilities']['virtual_compute']['properties']
        compute['virtual_memory']['virtual_mem_size'] = 'lots'
        self.assertRefused("virtual_mem_size 'lots' is not a size")

    def test_names_with_a_meaning_in_click(self):
        self.nodes['x); y'] = self.nodes.pop('left')
        self.assertRefused("connection point 'x); y'")

    def test_connection_points_with_the_same_variables(self):
        self.nodes['LEFT'] = copy.deepcopy(self.nodes['left'])
        self.assertRefused('two connection points have the same variables')

    def test_a_define_that_a_connection_point_has(self):
        self.rules.update(type='ipv4', define='LEFT_IP', default='10.0.0.1')
        del self.rules['handler'], self.rules['max_items']
        self.assertRefused('define LEFT_IP is a variable of a connection')

    def test_every_fault_of_a_property(self):
        for change, reason in (
                ({'type': 'text'}, 'type must be one of boolean, enum'),
                ({'handler': 'fw.config; x'}, 'is not a name'),
                ({'handler': 7}, 'is not a name'),
                ({'define': 'X'}, 'needs either handler or define'),
                ({'handler': None, 'define': None}, 'needs either'),
                ({'extra': 1}, 'unknown key extra'),
                ({'max_items': -1}, 'max_items must be within 0 to 10000'),
                ({'max_items': 'many'}, 'max_items must be within'),
                ({'values': ['x']}, 'values belong to type enum'),
                ({'default': ['allow $X']}, 'default: property rules: '),
                ({'default': 'allow all'}, 'expected a list of rules')):
            kept = dict(self.rules)
            self.rules.update(change)
            self.assertRefused('property rules', reason)
            self.rules.clear()
            self.rules.update(kept)

    def test_outputs(self):
        flavour = loader.load(str(self.package), 'simple')
        self.assertEqual(
            'received.count', flavour.vdus['VDU1'].configuration
            .outputs['received'].handler)
        for entry, reason in (
                ('x', 'expected a map'), ({}, 'handler is missing'),
                ({'handler': 'x; y'}, 'is not a name'),
                ({'handler': 'a.b', 'x': 1}, 'expected a map')):
            self.settings['outputs'] = {'seen': entry}
            self.assertRefused('output seen', reason)
        self.settings['outputs'] = []
        self.assertRefused('outputs must be a map')

    def test_faults_of_lists_records_and_strings(self):
        del self.rules['default'], self.rules['max_items']
        ipv4 = {'type': 'ipv4'}
        for change, reason in (
                ({'type': 'list'}, 'items: expected a map'),
                ({'type': 'list', 'items': {'type': 'list'}},
                 'type list cannot be a part'),
                ({'type': 'list', 'items': {'type': 'secret'}},
                 'type secret cannot be a part'),
                ({'type': 'list', 'items': ipv4, 'separator': ');'},
                 'separator must be'),
                ({'type': 'list', 'items': ipv4, 'max_items': 10001},
                 'within 0 to 10000'),
                ({'type': 'list', 'max_items': 513,
                  'items': {'type': 'string', 'pattern': 'a'}},
                 'the limit is 512 for strings with a pattern'),
                ({'type': 'record'}, 'fields must be a map of 1 to 16'),
                ({'type': 'record', 'fields': {'A': ipv4}},
                 'field A: a name has a-z'),
                ({'type': 'record', 'fields': {'a': {'type': 'record'}}},
                 'type record cannot be a part'),
                ({'type': 'record', 'fields': {'a': ipv4}, 'format': '$b'},
                 'format has to name each field'),
                ({'type': 'record', 'fields': {'a': ipv4}, 'format': '$a $'},
                 'format has to name each field'),
                ({'type': 'record', 'fields': {'a': ipv4},
                  'format': '$a\n'}, 'printable'),
                ({'type': 'string', 'pattern': '(a+)+'}, 'pattern: '),
                ({'type': 'string', 'pattern': ['a']}, 'pattern: '),
                ({'type': 'string', 'max_length': 256}, 'within 0 to 255'),
                ({'type': 'rate'}, 'unit must be one of bps, Bps, pps'),
                ({'type': 'rate', 'unit': 'bps', 'max': -1}, 'max must be'),
                ({'type': 'ipv4', 'max': 1}, 'unknown key max; type ipv4'),
                ({'type': 'secret', 'default': 'x'}, 'holds no secret'),
                ({'type': 'port_range', 'split': 1}, 'split: expected true')):
            kept = dict(self.rules)
            self.rules.update(change)
            self.assertRefused('property rules', reason)
            self.rules.clear()
            self.rules.update(kept)

    def test_a_secret_may_be_none_by_default(self):
        self.rules.clear()
        self.rules.update(type='secret', handler='a.key', default='')
        found = self.load()['VDU1'].configuration.properties['rules']
        self.assertEqual('', found.default)

    def test_a_reserved_name(self):
        self.settings['properties']['guests'] = dict(self.rules)
        self.assertRefused('property guests: the name is reserved')

    def test_property_names(self):
        for name in ('Rules', 'a b', '1a', 7):
            self.settings['properties'] = {name: dict(self.rules)}
            self.assertRefused('a name has a-z, 0-9 and _ only')

    def test_two_properties_for_one_handler(self):
        self.settings['properties']['more'] = dict(self.rules)
        self.assertRefused('two properties go to fw.config')

    def test_rules_cannot_be_a_define(self):
        self.rules['define'] = 'RULES'
        del self.rules['handler']
        self.assertRefused('filter_rules need a handler')

    def test_too_many_properties(self):
        self.settings['properties'] = {
            'p%d' % n: dict(self.rules, handler='e%d.h' % n)
            for n in range(65)}
        self.assertRefused('65 properties, the limit is 64')

    def test_a_shared_property_must_be_the_same(self):
        self.nodes['VDU2'] = copy.deepcopy(self.vdu)
        policies = self.vnfd['topology_template']['policies']
        second = copy.deepcopy(policies[0]['configuration'])
        second['targets'] = ['VDU2']
        second['properties']['properties']['rules']['max_items'] = 3
        policies.append({'second': second})
        self.assertRefused('property rules differs in another VDU')

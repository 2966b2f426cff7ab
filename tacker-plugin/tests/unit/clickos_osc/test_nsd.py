# SPDX-License-Identifier: Apache-2.0
"""Forwarding paths of TOSCA files."""

import copy
import os
import tempfile
import unittest

from osc_lib import exceptions
import yaml

from clickos_osc.v1 import nsd


def _position(*elements, **properties):
    return {'type': 'tosca.nodes.nfv.NfpPosition', 'properties': properties,
            'requirements': [{'element': each} for each in elements]}


def _element(*targets):
    return {'type': 'tosca.nodes.nfv.NfpPositionElement',
            'requirements': [{'profile_element': each} for each in targets]}


NSD = {'topology_template': {
    'node_templates': {
        'client': {'type': 'tosca.nodes.nfv.Sap'},
        'fw': {'type': 'clickos.nodes.Firewall'},
        'ids1': {'type': 'example.Ids'}, 'ids2': {'type': 'example.Ids'},
        'at_client': _position('from_client'),
        'first': _position('to_fw'),
        'second': _position('to_ids1', 'to_ids2', forwarding_behaviour='lb'),
        'from_client': _element('client'),
        'to_fw': _element({'node': 'fw', 'capability': 'left'},
                          {'node': 'fw', 'capability': 'right'}),
        'to_ids1': _element({'node': 'ids1', 'capability': 'forwarding'}),
        'to_ids2': _element('ids2'),
        'web': {'type': 'tosca.nodes.nfv.NFP', 'requirements': [
            {'nfp_position': each}
            for each in ('at_client', 'first', 'second')]}},
    'policies': [
        {'rule': {'type': 'tosca.policies.nfv.NfpRule', 'targets': ['web'],
                  'properties': {
                      'ether_type': 'ipv4', 'protocol': 'tcp',
                      'source_ip_address_prefix': '10.0.0.0/24',
                      'destination_port_range': [80, 81]}}},
        {'other': {'type': 'tosca.policies.nfv.NfpRule',
                   'targets': ['elsewhere'], 'properties': {'dscp': 3}}}]}}
VNFFGD = {'topology_template': {'node_templates': {'path1': {
    'type': 'tosca.nodes.nfv.FP.TackerV2', 'properties': {
        'id': 51, 'policy': {'type': 'ACL', 'criteria': [
            {'name': 'block_tcp', 'classifier': {
                'network_src_port_id': 'p1', 'ip_proto': 6,
                'destination_port_range': '80-1024'}}]},
        'path': [{'forwarder': 'VNFD1', 'capability': 'CP11'},
                 {'forwarder': 'VNFD1', 'capability': 'CP12'},
                 {'forwarder': 'VNFD2', 'capability': 'CP21'}]}}}}}


class NsdTest(unittest.TestCase):

    def read(self, content, wanted=None, names=None):
        """Read a descriptor, or a file's text."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, 'ns.yaml')
            with open(path, 'w', encoding='utf-8') as target:
                target.write(content if isinstance(content, str)
                             else yaml.safe_dump(content))
            hops, flows, self.is_fused = nsd.read(path, wanted, names or {})
            return hops, flows

    def refused(self, words, content, *arguments):
        """Check a refusal, which names the file first."""
        with self.assertRaisesRegex(exceptions.CommandError,
                                    f'ns.yaml: .*{words}'):
            self.read(content, *arguments)

    def changed(self, section, name, **values):
        """Return the NSD with a changed node or policy."""
        new = copy.deepcopy(NSD)
        found = new['topology_template'][section]
        (found if section == 'node_templates' else found[0])[name].update(
            values)
        return new

    def test_sol001(self):
        hops, flows = self.read(NSD, names={'fw': 'edge'})
        self.assertEqual(
            [[('edge', {'ingress': 'left', 'egress': 'right'})],
             [('ids1', {}), ('ids2', {})]], hops)
        self.assertEqual(
            [{'ethertype': 'IPv4', 'protocol': 'tcp',
              'source-ip-prefix': '10.0.0.0/24',
              'destination-port': '80:81'}], flows)

    def test_vnffgd(self):
        hops, flows = self.read(VNFFGD, 'path1', {'VNFD1': 'fw'})
        self.assertEqual(
            [[('fw', {'ingress': 'CP11', 'egress': 'CP12'})],
             [('VNFD2', {'ingress': 'CP21'})]], hops)
        self.assertEqual(
            [{'logical-source-port': 'p1', 'protocol': '6',
              'destination-port': '80:1024'}], flows)

    def test_criteria_of_the_first_version(self):
        old = copy.deepcopy(VNFFGD)
        node = old['topology_template']['node_templates']['path1']
        node['properties']['policy']['criteria'] = [
            {'ip_proto': 17}, {'ip_dst_prefix': '10.0.0.9/32'}]
        self.assertEqual([{'protocol': '17',
                           'destination-ip-prefix': '10.0.0.9/32'}],
                         self.read(old)[1])

    def test_a_fused_path(self):
        self.read(NSD)
        self.assertIs(False, self.is_fused)
        self.read(self.changed('node_templates', 'web',
                               properties={'fused': True}))
        self.assertIs(True, self.is_fused)
        self.refused('web: fused: expected true', self.changed(
            'node_templates', 'web', properties={'fused': 'yes'}))

    def test_refusals(self):
        for words, content in (
                ('not YAML', '{'), ('not a descriptor', '[]'),
                ('it has none', {'topology_template': {}}),
                ('more than 262144', 'x' * 300000),
                ('first: needs a requirement element',
                 self.changed('node_templates', 'first', requirements=[])),
                ('second: forwarding_behaviour: all', self.changed(
                    'node_templates', 'second',
                    properties={'forwarding_behaviour': 'all'})),
                ('to_fw: profile_element: names several', self.changed(
                    'node_templates', 'to_fw',
                    requirements=[{'profile_element': 'fw'},
                                  {'profile_element': 'ids1'}])),
                ('rule: vlan_tag: the switch cannot', self.changed(
                    'policies', 'rule', properties={'vlan_tag': 1})),
                ('rule: ether_type: arp', self.changed(
                    'policies', 'rule', properties={'ether_type': 'arp'}))):
            with self.subTest(words=words):
                self.refused(words, content)
        self.refused('x: expected one of its forwarding paths: web', NSD, 'x')
        self.refused('web: nfp_position: no node x', self.changed(
            'node_templates', 'web', requirements=[{'nfp_position': 'x'}]))
        with self.assertRaisesRegex(exceptions.CommandError, 'No such file'):
            nsd.read('/nowhere/ns.yaml', None, {})

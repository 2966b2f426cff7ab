# SPDX-License-Identifier: Apache-2.0
"""Port chains of networking-sfc as chains of the switch."""

import copy

import testtools

from neutron_clickos.sfc import drivers
from neutron_clickos.sfc import render

CHAIN = {'id': 'c1', 'project_id': 'us',
         'port_pair_groups': ['g1', 'g2'],
         'flow_classifiers': ['f1'],
         'chain_parameters': {'symmetric': True, 'correlation': 'mpls'}}
GROUPS = {'g1': {'id': 'g1', 'port_pairs': ['p1'], 'tap_enabled': False,
                 'port_pair_group_parameters': {}},
          'g2': {'id': 'g2', 'port_pairs': ['p2', 'p3'], 'tap_enabled': False,
                 'port_pair_group_parameters': {'ppg_n_tuple_mapping': {
                     'ingress_n_tuple': {},
                     'egress_n_tuple': {'source_ip_prefix': '192.0.2.0/24'}}}}}
PAIRS = {key: {'id': key, 'project_id': 'us',
               'ingress': key + 'i', 'egress': key + 'e',
               'service_function_parameters': {'correlation': None,
                                               'weight': weight}}
         for key, weight in (('p1', 1), ('p2', 3), ('p3', 0))}
FLOWS = {'f1': {'id': 'f1', 'project_id': 'us',
                'ethertype': 'IPv4', 'protocol': 'tcp',
                'logical_source_port': 'client',
                'logical_destination_port': None,
                'source_ip_prefix': None,
                'destination_ip_prefix': '10.0.0.0/24',
                'source_port_range_min': None, 'source_port_range_max': None,
                'destination_port_range_min': 80,
                'destination_port_range_max': 81, 'l7_parameters': {}}}
PORTS = {key: render.Port('us', 'us', render.Place(
    'host1', 'vale0', 101, 'n' + key, secure))
    for key, secure in (('p1i', True), ('p1e', True), ('p2i', False),
                        ('p2e', False), ('client', True))}
PORTS.update({key: render.Port('us', 'us', None) for key in ('p3i', 'p3e')})


class RenderTest(testtools.TestCase):

    def render(self, **changes):
        parts = {'chain': CHAIN, 'groups': GROUPS, 'pairs': PAIRS,
                 'classifiers': FLOWS, 'ports': PORTS}
        parts.update(changes)
        return render.chain_set(**copy.deepcopy(parts))

    def test_whole_chain(self):
        self.assertEqual(('host1', {
            'switch': 'vale0', 'chain': 'c1', 'segment': 101,
            'classifiers': [{
                'source_port': 'nclient', 'destination': '10.0.0.0/24',
                'protocol': 6,
                'destination_ports': {'first': 80, 'last': 81}}],
            'hops': [
                {'pairs': [{'ingress': 'np1i', 'egress': 'np1e',
                            'weight': 1}], 'transparent': False},
                {'pairs': [{'ingress': 'np2i', 'egress': 'np2e',
                            'weight': 3}], 'transparent': True}],
            'nat': ['192.0.2.0/24'], 'symmetric': True}), self.render())

    def test_ethertype_without_a_prefix(self):
        flow = dict(FLOWS['f1'], ethertype='IPv6', destination_ip_prefix=None,
                    protocol=None, destination_port_range_min=None)
        found = self.render(classifiers={'f1': flow})[1]['classifiers']
        self.assertEqual([{'source_port': 'nclient', 'source': '::/0'}],
                         found)

    def test_symmetric_is_off_by_default(self):
        chain = dict(CHAIN, chain_parameters={'correlation': 'mpls'})
        self.assertFalse(self.render(chain=chain)[1]['symmetric'])

    def test_ports_that_are_not_bound(self):
        for key in ('p1i', 'p2e', 'client'):
            unbound = dict(PORTS, **{key: PORTS['p3i']})
            self.assertRaises(render.NotReady, self.render, ports=unbound)

    def test_one_bound_pair_makes_a_hop(self):
        pairs = dict(PAIRS, p3=dict(PAIRS['p3'],
                                    service_function_parameters={}))
        self.assertEqual(self.render(), self.render(pairs=pairs))

    def test_ports_at_several_places(self):
        for change in ({'segment': 102}, {'host': 'host2'},
                       {'switch': 'vale1'}):
            for key in ('p2i', 'p2e', 'client'):
                place = PORTS[key].place._replace(**change)
                apart = dict(PORTS, **{key: PORTS[key]._replace(place=place)})
                if key != 'client' or 'host' in change:
                    self.assertRaisesRegex(render.NotReady, 'several',
                                           self.render, ports=apart)

    def test_a_group_without_a_weight(self):
        idle = dict(PAIRS, p1=PAIRS['p3'])
        self.assertRaises(render.NotReady, self.render, pairs=idle)

    def test_parts_of_another_project(self):
        theirs = {'project_id': 'them'}
        for parts, part in (('pairs', PAIRS), ('classifiers', FLOWS)):
            for key in part:
                changed = dict(part, **{key: dict(part[key], **theirs)})
                self.assertRaisesRegex(render.Foreign, key, self.render,
                                       **{parts: changed})
        for key in PORTS:
            ports = dict(PORTS, **{key: PORTS[key]._replace(project='them')})
            self.assertRaisesRegex(render.Foreign, f'port {key}:',
                                   self.render, ports=ports)
            del ports[key]
            self.assertRaisesRegex(render.Foreign, f'port {key}:',
                                   self.render, ports=ports)

    def test_a_shared_network_needs_a_sender_of_the_project(self):
        shared = {key: port._replace(network_project='them')
                  for key, port in PORTS.items()}
        self.assertEqual(self.render(), self.render(ports=shared))
        flow = dict(FLOWS['f1'], logical_source_port=None)
        self.render(classifiers={'f1': flow})
        self.assertRaisesRegex(render.Foreign, 'needs logical_source_port',
                               self.render, ports=shared,
                               classifiers={'f1': flow})


class ChecksTest(testtools.TestCase):

    def refused(self, check, resource, reason):
        self.assertRaisesRegex(render.Unsupported, reason, check, resource)

    def test_classifiers(self):
        flow = FLOWS['f1']
        render.check_classifier(flow)
        self.refused(render.check_classifier,
                     dict(flow, l7_parameters={'url': 'x'}), 'l7_parameters')
        self.refused(render.check_classifier, dict(flow, protocol='icmp'),
                     'destination_port_range: needs protocol')
        self.refused(render.check_classifier, dict(flow, protocol='256'),
                     "protocol '256'")
        self.refused(render.check_classifier, dict(flow, protocol='ip' * 99),
                     'protocol')

    def test_pairs(self):
        render.check_pair(PAIRS['p2'])
        for parameters, reason in (({'correlation': 'mpls'}, 'correlation'),
                                   ({'weight': 17}, 'weight: 17'),
                                   ({'weight': -1}, 'weight: -1')):
            self.refused(render.check_pair,
                         {'service_function_parameters': parameters}, reason)

    def test_groups_and_chains(self):
        render.check_group(GROUPS['g1'])
        render.check_chain(CHAIN)
        self.refused(render.check_group,
                     dict(GROUPS['g1'], tap_enabled=True), 'tap_enabled')
        self.refused(render.check_group, {'port_pairs': ['p'] * 17},
                     'port_pairs: more than 16')
        self.refused(render.check_chain,
                     dict(CHAIN, port_pair_groups=['g'] * 21),
                     'port_pair_groups: 21')

    def test_ports_on_several_hosts(self):
        drivers.check_one_host(PORTS)
        place = PORTS['p2e'].place._replace(host='host2')
        apart = dict(PORTS, p2e=PORTS['p2e']._replace(place=place))
        caught = self.assertRaises(drivers.SeveralHosts,
                                   drivers.check_one_host, apart)
        self.assertIn('port p2e: is on another host than port p1i',
                      str(caught))
        self.assertNotIn('host2', str(caught))

    def test_drivers_have_all_methods(self):
        drivers.ValeSfcDriver()
        drivers.ValeFlowClassifierDriver()

# SPDX-License-Identifier: Apache-2.0
"""Port chains of networking-sfc as chains of the switch."""

import copy
import functools

import testtools

from neutron_clickos.sfc import drivers
from neutron_clickos.sfc import render

CHAIN = {'id': 'c1', 'project_id': 'us', 'chain_id': 7,
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
    'host1', 'vale0', 101, 'n' + key, secure, 'mac ' + key,
    ['10.0.0.5/32']), ['0.0.0.0/0'], ['10.0.0.5/32'])
    for key, secure in (('p1i', True), ('p1e', True), ('p2i', False),
                        ('p2e', False), ('client', True))}
PORTS.update({key: render.Port('us', 'us', None, [], [])
              for key in ('p3i', 'p3e')})
TUNNELS = {'host1': '192.0.2.1', 'host2': '192.0.2.2'}


def at_host2(*keys):
    """:returns: PORTS, of which these are on the other host"""
    return {key: port._replace(place=port.place._replace(host='host2'))
            if key in keys else port for key, port in PORTS.items()}


class RenderTest(testtools.TestCase):

    def render(self, **changes):
        parts = {'chain': CHAIN, 'groups': GROUPS, 'pairs': PAIRS,
                 'classifiers': FLOWS, 'ports': PORTS,
                 'tunnels': TUNNELS}
        parts.update(changes)
        return render.chain_sets(**copy.deepcopy(parts))

    def test_whole_chain(self):
        self.assertEqual({'host1': {
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
            'nat': ['192.0.2.0/24'], 'symmetric': True}}, self.render())

    def test_the_tags_of_its_ports_say_what_a_hop_is(self):
        def hops(**changes):
            ports = dict(PORTS)
            for key, change in changes.items():
                place = ports[key].place._replace(**change)
                ports[key] = ports[key]._replace(place=place)
            return self.render(ports=ports)['host1']['hops']
        # The first hop has port security, the second one has not.
        self.assertEqual([False, True],
                         [hop['transparent'] for hop in hops()])
        for secure in (True, False):
            for said in (True, False):
                change = {'secure': secure, 'transparent': said}
                self.assertEqual(
                    [said, said], [hop['transparent'] for hop in hops(
                        p1i=change, p2i=change)])
        self.assertEqual([None, 3], [hop.get('copies') for hop in hops(
            p2i={'copies': 3})])

    def test_a_claim_counts_within_what_each_live_egress_may_claim(self):
        for claimable, counts in ((['192.0.2.0/24'], True),
                                  (['192.0.0.0/16'], True),
                                  (['192.0.2.0/25', '192.0.2.128/25'], False),
                                  (['::/0'], False), ([], False)):
            port = PORTS['p2e']._replace(claimable=claimable)
            found = self.render(ports=dict(PORTS, p2e=port))['host1']
            self.assertEqual(['192.0.2.0/24'] if counts else [],
                             found['nat'])
            self.assertEqual(2, len(found['hops']))
            check = functools.partial(
                render.check_claims, GROUPS['g2'], [PAIRS['p2']],
                {'p2e': port})
            if counts:
                check()
            else:
                self.assertRaisesRegex(
                    render.Foreign, 'group g2: source_ip_prefix 192.0.2.0/24:'
                    ' more than port p2e may use', check)

    def test_ethertype_without_a_prefix(self):
        flow = dict(FLOWS['f1'], ethertype='IPv6', destination_ip_prefix=None,
                    protocol=None, destination_port_range_min=None)
        found = self.render(classifiers={'f1': flow})['host1']['classifiers']
        self.assertEqual([{'source_port': 'nclient', 'source': '::/0'}],
                         found)

    def test_symmetric_is_off_by_default(self):
        chain = dict(CHAIN, chain_parameters={'correlation': 'mpls'})
        self.assertFalse(self.render(chain=chain)['host1']['symmetric'])

    def test_ports_that_are_not_bound(self):
        for key in ('p1i', 'p2e', 'client'):
            unbound = dict(PORTS, **{key: PORTS['p3i']})
            self.assertRaises(render.NotReady, self.render, ports=unbound)

    def test_a_sender_without_an_address(self):
        place = PORTS['client'].place._replace(allowed=[])
        bare = PORTS['client']._replace(place=place)
        self.render(ports=dict(PORTS, client=bare))
        ports = dict(at_host2('p2i', 'p2e'), client=bare)
        self.assertRaisesRegex(render.NotReady, 'nclient: has no address',
                               self.render, ports=ports)

    def test_a_chain_without_classifiers_is_no_chain_that_waits(self):
        self.assertRaises(render.Empty, self.render,
                          chain=dict(CHAIN, flow_classifiers=[]))

    def test_a_prefix_with_a_mask_is_no_claim(self):
        # Neutron takes the first two for networks, and no switch does.
        for prefix in ('2001:db8::/ffff:ffff::', '::/::ff', 'x'):
            group = copy.deepcopy(GROUPS['g2'])
            mapping = group['port_pair_group_parameters'][
                'ppg_n_tuple_mapping']
            mapping['egress_n_tuple']['source_ip_prefix'] = prefix
            self.assertRaisesRegex(render.Unsupported, 'source_ip_prefix',
                                   render.check_group, group)
        render.check_group(GROUPS['g2'])

    def rights(self, chain=CHAIN, **ports):
        return render.rights(chain, GROUPS, PAIRS, FLOWS,
                             dict(PORTS, **ports))

    def test_a_chain_that_waits_has_rights_to_its_ports_addresses_only(self):
        pair = PORTS['p3e']._replace(claimable=['192.0.2.0/24'])
        unbound = PORTS['client']._replace(place=None)
        self.assertEqual(['10.0.0.5/32', '192.0.2.0/24'],
                         self.rights(p3e=pair, client=unbound))
        # Each pair counts for a claim, bound or not.
        self.assertEqual(['10.0.0.5/32'], self.rights())
        self.assertEqual(['192.0.2.0/24'], self.rights(
            dict(CHAIN, flow_classifiers=[]), p3e=pair))

    def test_one_bound_pair_makes_a_hop(self):
        pairs = dict(PAIRS, p3=dict(PAIRS['p3'],
                                    service_function_parameters={}))
        self.assertEqual(self.render(), self.render(pairs=pairs))

    def test_ports_at_several_places(self):
        for change in ({'segment': 102}, {'switch': 'vale1'}):
            for key in ('p2i', 'p2e'):
                place = PORTS[key].place._replace(**change)
                apart = dict(PORTS, **{key: PORTS[key]._replace(place=place)})
                self.assertRaisesRegex(render.NotReady, 'several',
                                       self.render, ports=apart)
        self.assertRaisesRegex(render.NotReady, 'port pair p2: ports on two',
                               self.render, ports=at_host2('p2i'))

    def test_each_host_of_a_path_gets_the_chain(self):
        found = self.render(ports=at_host2('p2i', 'p2e'))
        self.assertEqual(['host1', 'host2'], sorted(found))
        for host, address in TUNNELS.items():
            self.assertEqual({'number': 7, 'local': address,
                              'hosts': ['192.0.2.1', '192.0.2.2']},
                             found[host].pop('path'))
        self.assertEqual(found['host1'], found['host2'])
        self.assertEqual(['192.0.2.1', '192.0.2.2'], [
            hop['pairs'][0]['host'] for hop in found['host1']['hops']])
        self.assertEqual([{
            'source_port': 'nclient', 'destination': '10.0.0.0/24',
            'protocol': 6, 'destination_ports': {'first': 80, 'last': 81},
            'host': '192.0.2.1', 'senders': ['10.0.0.5/32']}],
            found['host1']['classifiers'])

    def test_a_client_at_another_host_than_all_hops(self):
        found = self.render(ports=at_host2('client'))
        self.assertEqual(['host1', 'host2'], sorted(found))
        self.assertEqual('192.0.2.2',
                         found['host1']['classifiers'][0]['host'])

    def test_a_destination_at_another_host(self):
        flow = dict(FLOWS['f1'], logical_destination_port='server')
        there = PORTS['client'].place._replace(
            host='host3', mac='mac server', allowed=['10.0.0.9/32'])
        ports = dict(PORTS, server=render.Port('us', 'us', there, [], []))
        found = self.render(ports=ports, classifiers={'f1': flow})
        self.assertEqual(['host1'], list(found))
        self.assertNotIn('path', found['host1'])
        classifier = found['host1']['classifiers'][0]
        self.assertEqual(('mac server', ['10.0.0.9/32']), (
            classifier['destination_mac'], classifier['receivers']))
        self.assertNotIn('destination_port', classifier)
        open_port = dict(ports, server=ports['server']._replace(
            place=there._replace(secure=False)))
        found = self.render(ports=open_port, classifiers={'f1': flow})
        self.assertEqual(['0.0.0.0/0', '::/0'],
                         found['host1']['classifiers'][0]['receivers'])

    def test_hosts_without_a_path(self):
        apart = at_host2('p2i', 'p2e')
        self.assertRaisesRegex(render.NotReady, 'no tunnel_ip', self.render,
                               ports=apart, tunnels={'host1': '192.0.2.1'})
        flow = dict(FLOWS['f1'], logical_source_port=None)
        self.assertRaisesRegex(render.NotReady, 'f1: needs logical_source',
                               self.render, ports=apart,
                               classifiers={'f1': flow})
        flow['logical_destination_port'] = 'client'
        self.assertRaisesRegex(render.NotReady, 'f1: needs logical_source',
                               self.render, ports=at_host2('client'),
                               classifiers={'f1': flow})

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

    def test_all_hops_are_on_one_network(self):
        ports = {key: port._replace(network='left')
                 for key, port in PORTS.items()}
        render.check_network(PAIRS.values(), ports)
        ports['p2e'] = ports['p2e']._replace(network='right')
        refused = self.assertRaises(render.Unsupported, render.check_network,
                                    PAIRS.values(), ports)
        self.assertIn('port pair p2: port p2e is on network right, the first'
                      ' hop of the chain is on network left', str(refused))

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

    def test_hosts_without_a_path_are_refused(self):
        pairs, flows = list(PAIRS.values()), list(FLOWS.values())
        drivers.check_path(pairs, flows, PORTS, {})
        apart = at_host2('p2i', 'p2e')
        drivers.check_path(pairs, flows, apart, TUNNELS)
        caught = self.assertRaises(drivers.NoPath, drivers.check_path, pairs,
                                   flows, apart, {'host1': '192.0.2.1'})
        self.assertNotIn('host2', str(caught))
        unnamed = [dict(FLOWS['f1'], logical_source_port=None)]
        caught = self.assertRaises(drivers.NoPath, drivers.check_path, pairs,
                                   unnamed, apart, TUNNELS)
        self.assertIn('needs logical_source_port', str(caught))

    def test_drivers_have_all_methods(self):
        drivers.ValeSfcDriver()
        drivers.ValeFlowClassifierDriver()

# SPDX-License-Identifier: Apache-2.0
"""openstack clickos chain, with the real service for its counters."""

import tempfile
import types

from clickos_client import chains
from openstack import exceptions as sdk_exceptions
from osc_lib import exceptions
import yaml

from clickos_osc.v1 import chain
from tests.unit.clickos_osc import base
from tests.unit.clickos_osc import networking
from tests.unit.clickos_osc import test_nsd

FLOW = 'protocol=tcp,source-ip-prefix=10.0.0.0/24,destination-port=80:81'


class ChainTest(base.CommandTestCase):
    """The servers a, b and c, and the VNF fw of the server my-fw."""

    def setUp(self):
        super().setUp()
        self.network = networking.Network()
        self.servers = {}
        connection = self.manager.sdk_connection
        connection.network = self.network
        connection.compute = types.SimpleNamespace(
            find_server=lambda name, ignore_missing: self.servers.get(name),
            get_server=self.servers.get)
        for name in 'abc':
            self.add_server(name, name)
        self.add_server('one', self.server_id,
                        f'clickos-vnf:{self.vnf_id}')
        self.cloud.vnfs[self.vnf_id][1]['vnfInstanceName'] = 'fw'

    def add_server(self, name, server_id, description=''):
        """Make a server; Neutron names its second interface first."""
        macs = [f'{name}-{side}' for side in ('in', 'out')]
        for mac in reversed(macs):
            self.network.add_port(mac, server_id, mac, description)
        self.servers[server_id] = types.SimpleNamespace(
            id=server_id, addresses={'net': [
                {'OS-EXT-IPS-MAC:mac_addr': mac} for mac in macs]})

    def run_chain(self, command, *arguments):
        """Run a command and return its result."""
        return self.run_command(command, *arguments)[0]

    def create(self, name='web', hops=('a', 'b'), flow=FLOW):
        """Make a chain."""
        arguments = [word for hop in hops for word in ('--hop', hop)]
        return self.run_chain(chain.CreateChain, name, *arguments,
                              '--classifier', flow)

    def refused(self, words, command, *arguments):
        """Check that a command fails and says why."""
        with self.assertRaisesRegex(exceptions.CommandError, words):
            self.run_chain(command, *arguments)

    def made(self):
        """Count what networking-sfc has."""
        return {kind: len(found)
                for kind, found in self.network.made.items() if found}

    def hops(self, name='web'):
        """Return the hops that list shows."""
        rows = self.run_chain(chain.ListChain)[1]
        return [row[2] for row in rows if row[1] == name]

    def test_create(self):
        found = dict(zip(*self.create(hops=['b', 'fw', 'a'])))
        self.assertEqual(('web', 'b, fw, a'), (found['name'],
                                               found['hops']))
        self.assertEqual(
            {('b-in', 'b-out'), ('one-in', 'one-out'), ('a-in', 'a-out')},
            {(pair.ingress, pair.egress)
             for pair in self.network.sfc_port_pairs()})
        flow, = self.network.sfc_flow_classifiers()
        self.assertEqual(
            ('tcp', '10.0.0.0/24', 80, 81),
            (flow.protocol, flow.source_ip_prefix,
             flow.destination_port_range_min,
             flow.destination_port_range_max))
        made, = self.network.sfc_port_chains()
        self.assertEqual({'symmetric': True}, made.chain_parameters)

    def test_show(self):
        self.create(hops=['a+b'], flow='protocol=tcp,destination-port=80')
        found = {name: getattr(value, 'machine_readable', lambda: value)()
                 for name, value in zip(*self.run_chain(chain.ShowChain,
                                                        'web'))}
        self.assertEqual(
            (['protocol=tcp,destination-port=80'], 'net-name', False,
             ['a', 'b']),
            (found['classifiers'], found['network'], found['fused'],
             [row['guest'] for row in found['ports']]))
        self.assertIn('both ways', found['direction'])

    def test_set(self):
        self.create()
        before, = self.network.sfc_flow_classifiers()
        found = dict(zip(*self.run_chain(
            chain.SetChain, 'web', '--name', 'new', '--classifier',
            'protocol=udp', '--classifier', 'protocol=icmp')))
        self.assertEqual('new', found['name'])
        flows = list(self.network.sfc_flow_classifiers())
        self.assertEqual(['udp', 'icmp'], [flow.protocol for flow in flows])
        self.assertNotIn(before.id, [flow.id for flow in flows])
        self.refused('nothing to change', chain.SetChain, 'new')

    def test_a_set_that_is_refused_changes_nothing(self):
        self.create()
        before = list(self.network.sfc_flow_classifiers())

        def refuse(*arguments, **values):
            raise networking.Refused('no')
        self.network.update_sfc_port_chain = refuse
        self.refused('no', chain.SetChain, 'web', '--classifier',
                     'protocol=udp')
        self.assertEqual(before, list(self.network.sfc_flow_classifiers()))

    def test_a_neutron_that_lets_no_classifiers_overlap(self):
        self.create()
        own, = self.network.sfc_flow_classifiers()

        def refuse(**values):
            raise sdk_exceptions.BadRequestException(
                f'in conflict with {found}')
        self.network.create_sfc_flow_classifier = refuse
        for found, words in ((own.id, 'is of the chain itself'),
                             ('that of others', 'conflict with that of')):
            self.refused(words, chain.SetChain, 'web', '--classifier',
                         'protocol=tcp')
        self.assertEqual([own], list(self.network.sfc_flow_classifiers()))

    def test_create_from_a_descriptor(self):
        for side, point in (('in', 'left'), ('out', 'right')):
            port = self.network.known_ports[f'one-{side}']
            port.name = f'VDU1-0-{point}'
        with tempfile.NamedTemporaryFile('w', suffix='.yaml') as target:
            yaml.safe_dump(test_nsd.NSD, target)
            target.flush()
            self.run_chain(chain.CreateChain, 'web', '--nsd', target.name,
                           *(f'--vnf={pair}' for pair in (
                               'ids1=a', 'ids2=b')))
        self.assertEqual(['fw, a+b'], self.hops())
        flow, = self.network.sfc_flow_classifiers()
        self.assertEqual((80, 81), (flow.destination_port_range_min,
                                    flow.destination_port_range_max))

    def test_options_of_hops(self):
        self.create(hops=['a,ingress=out,egress=a-in,weight=3+b'],
                    flow='source-ip-prefix=fd00::/64,'
                         'logical-source-port=c-in')
        pairs = {pair.name: pair for pair in self.network.sfc_port_pairs()}
        self.assertEqual(('a-out', 'a-in', {
            'correlation': None, 'weight': 3}), (
            pairs['a'].ingress, pairs['a'].egress,
            pairs['a'].service_function_parameters))
        self.assertEqual(['a+b'], self.hops())
        flow, = self.network.sfc_flow_classifiers()
        self.assertEqual(('IPv6', 'c-in'),
                         (flow.ethertype, flow.logical_source_port))

    def test_ports_and_chains_of_other_projects(self):
        """The network's owner, or an administrator, is shown them."""
        mark = f'clickos-vnf:{self.vnf_id}'
        self.network.add_port('theirs', 'their-server', 'mac', mark, 'other')
        self.network.add_port('faked', 'a', 'a-mac', '', 'other')
        named = self.network.known_ports['faked']
        named.name = 'c-in'
        self.network.create_sfc_port_chain(
            name='web', port_pair_groups=['g'], flow_classifiers=[],
            project_id='other')
        self.create(hops=['fw', 'a'], flow='logical-source-port=c-in')
        self.assertEqual(
            {('one-in', 'one-out'), ('a-in', 'a-out')},
            {(pair.ingress, pair.egress)
             for pair in self.network.sfc_port_pairs()})
        flow, = self.network.sfc_flow_classifiers()
        self.assertEqual('c-in', flow.logical_source_port)
        self.assertEqual('the-project', chains.find(
            self.network, 'web').project_id)
        theirs, = [each for each in self.network.sfc_port_chains()
                   if each.project_id == 'other']
        self.assertIs(theirs, chains.find(self.network, theirs.id))
        theirs.name = 'alone'
        with self.assertRaisesRegex(chains.ChainError, 'does not exist'):
            chains.find(self.network, 'alone')

    def test_a_hop_that_translates(self):
        self.create(hops=['a,nat=192.0.2.7/32+b', 'c'])
        first, second = self.network.sfc_port_pair_groups()
        mapping = first.port_pair_group_parameters['ppg_n_tuple_mapping']
        self.assertEqual({'source_ip_prefix': '192.0.2.7/32'},
                         mapping['egress_n_tuple'])
        self.assertIsNone(second.port_pair_group_parameters)
        self.refused('share one nat', chain.InsertHop, 'web',
                     'fw,nat=192.0.2.7/32+a,nat=192.0.2.8/32')

    def test_a_live_chain_changes_by_one_request(self):
        self.create()
        for command, arguments, hops in (
                (chain.InsertHop, ['c'], 'a, b, c'),
                (chain.InsertHop, ['fw', '--before', 'a'], 'fw, a, b, c'),
                (chain.RemoveHop, ['c'], 'fw, a, b'),
                (chain.InsertHop, ['c', '--after', 'a'], 'fw, a, c, b'),
                (chain.ReorderHops, ['a', 'b', 'c', 'fw'], 'a, b, c, fw')):
            self.network.requests.clear()
            self.run_chain(command, 'web', *arguments)
            self.assertEqual(['port_chain'], self.network.requests)
            self.assertEqual([hops], self.hops())
        self.assertEqual(4, self.made()['port_pair'])

    def test_delete_takes_what_no_other_chain_has(self):
        self.create('one', ['a', 'b'])
        self.create('two', ['b', 'c'])
        self.assertEqual(3, self.made()['port_pair_group'])
        self.run_chain(chain.DeleteChain, 'one')
        self.assertEqual({'flow_classifier': 1, 'port_chain': 1,
                          'port_pair': 2, 'port_pair_group': 2}, self.made())
        self.run_chain(chain.DeleteChain, 'two')
        self.assertEqual({}, self.made())

    def test_delete_leaves_parts_of_others(self):
        pair = self.network.create_sfc_port_pair(
            name='p', description='', ingress='a-in', egress='a-out',
            service_function_parameters={'correlation': None})
        self.network.create_sfc_port_pair_group(
            name='theirs', description='clickos chain of theirs',
            port_pairs=[pair.id])
        self.create()
        self.assertEqual(['theirs, b'], self.hops())
        self.run_chain(chain.DeleteChain, 'web')
        self.assertEqual({'port_pair': 1, 'port_pair_group': 1}, self.made())

    def test_a_refused_chain_leaves_nothing(self):
        for kind in ('port_pair', 'port_pair_group', 'flow_classifier',
                     'port_chain'):
            self.network.refused = kind
            with self.assertRaisesRegex(exceptions.CommandError, 'x: no'):
                self.create()
            self.assertEqual({}, self.made())

    def test_a_refused_insertion_leaves_the_chain(self):
        self.create()
        before = self.made()
        self.network.refused = 'port_pair_group'
        self.refused('x: no', chain.InsertHop, 'web', 'c')
        self.assertEqual(before, self.made())

    def test_stats(self):
        self.create(hops=['a'])
        made, = self.network.sfc_port_chains()
        self.cloud.add_chain(made.id, self.project_id)
        columns, rows = self.run_chain(
            chain.ShowChainStats, 'web', '--interval', '0.1')
        self.assertEqual('Hop', columns[0])
        self.assertEqual([('entered', '', 0, 0, 0, 3, 300, 0, 0),
                          ('a', '1/2', 0, 0, 0, 3, 300, 0, 0)], rows)
        self.agent.broken = {'error': {'code': 'not-active',
                                       'message': 'not at the switch'}}
        self.refused('not at the switch', chain.ShowChainStats, 'web')
        self.refused('not between', chain.ShowChainStats, 'web', '--interval',
                     '60')

    def test_bad_arguments(self):
        self.create()
        for words, command, arguments in (
                ('chain x: does not', chain.DeleteChain, ['x']),
                ('hop x: does not', chain.RemoveHop, ['web', 'x']),
                ('hop x: does not', chain.InsertHop,
                 ['web', 'c', '--after', 'x']),
                ('no VNF and no server', chain.InsertHop, ['web', 'x']),
                ('comes twice', chain.InsertHop, ['web', 'a']),
                ('each of its hops', chain.ReorderHops, ['web', 'a']),
                ('each of its hops', chain.ReorderHops,
                 ['web', 'a', 'a']),
                ('port of hop c x: does not', chain.InsertHop,
                 ['web', 'c,ingress=x']),
                ('weight: expected', chain.InsertHop,
                 ['web', 'c,weight=17']),
                ('expected one of ingress', chain.InsertHop,
                 ['web', 'c,speed=1']),
                ('each key once', chain.InsertHop, ['web', 'c,ingress']),
                ('either --hop or --nsd', chain.CreateChain, ['new']),
                ('needs a hop and', chain.CreateChain,
                 ['new', '--hop', 'a']),
                ('exists already', chain.CreateChain,
                 ['web', '--hop', 'c', '--classifier', FLOW]),
                ('expected one of protocol', chain.CreateChain,
                 ['new', '--hop', 'c', '--classifier', 'port=1']),
                ('expected a port', chain.CreateChain,
                 ['new', '--hop', 'c', '--classifier', 'source-port=x'])):
            before = self.made()
            self.refused(words, command, *arguments)
            self.assertEqual(before, self.made())
        self.run_chain(chain.RemoveHop, 'web', 'a')
        self.refused('the last hop', chain.RemoveHop, 'web', 'b')

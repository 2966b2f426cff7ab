# SPDX-License-Identifier: Apache-2.0
"""The service plugin on Neutron's and networking-sfc's tables in memory."""

import datetime
import itertools
import types
from unittest import mock
import uuid

from clickos_client import neutron_rpc
import fixtures
from neutron_lib import context as neutron_context
from neutron_lib.db import api as db_api
from oslo_config import cfg
from oslo_serialization import jsonutils

from neutron_clickos import conf
from neutron_clickos.sfc import drivers
from neutron_clickos.sfc import plugin
from neutron_clickos.sfc import render
from neutron_clickos.sfc import sfc_db
from tests.neutron import base

_DETAILS = jsonutils.dumps({
    'vale_switch': 'vale0', 'vale_segment': 101, 'vale_port': 'p1',
    'vale_port_security': False,
    'vale_allowed': [{'mac': 'its mac', 'ip': '10.0.0.5/32'}]})


class PluginTest(base.TablesCase):

    def delete(self, port):
        plugin.refuse_delete(None, None, None,
                             types.SimpleNamespace(resource_id=port))

    def test_the_manager_passes_refusals(self):
        driver = mock.Mock()
        manager = plugin.DriverManager.__new__(plugin.DriverManager)
        manager.ordered_drivers = [mock.Mock(obj=driver)]
        refusal = drivers.Refused(reason='no')
        for method in ('update_port_chain', 'create_port_pair',
                       'update_port_pair_group'):
            getattr(driver, method + '_precommit').side_effect = refusal
            caught = self.assertRaises(
                drivers.Refused, getattr(manager, method + '_precommit'), 1)
            self.assertIs(refusal, caught)

    def test_ports(self):
        for port, status in (('one', 'ACTIVE'), ('two', 'INACTIVE')):
            self.insert('ml2_port_bindings', port_id=port, host='host1',
                        vif_type='vale', vif_details=_DETAILS, status=status)
        self.assertEqual(
            {'one': render.Port('us', 'owner', render.Place(
                'host1', 'vale0', 101, 'p1', False, 'fa:16:3e:00:00:00',
                ['10.0.0.5/32']), [], [], 'net'),
             'two': render.Port('us', 'owner', None, [], [], 'net')},
            sfc_db.ports({'one', 'two', 'absent'}))

    def test_the_tags_of_a_port_say_what_its_hop_is(self):
        self.insert('ml2_port_bindings', port_id='one', host='host1',
                    vif_type='vale', vif_details=_DETAILS, status='ACTIVE')
        for tag in ('clickos:transparent', 'clickos:copies=3', 'mine'):
            # The network has the number 0.
            self.insert('tags', standard_attr_id=1, tag=tag)
        place = sfc_db.ports({'one'})['one'].place
        self.assertEqual((True, 3), (place.transparent, place.copies))

    def test_hosts_have_the_address_that_their_agent_reported(self):
        for n, (kind, links) in enumerate((
                (neutron_rpc.AGENT_TYPE, {'tunneling_ip': '192.0.2.1'}),
                (neutron_rpc.AGENT_TYPE, {'tunneling_ip': '192.0.2.2'}),
                (neutron_rpc.AGENT_TYPE, {}),
                ('Open vSwitch agent', {'tunneling_ip': '192.0.2.4'}))):
            self.insert('agents', id=str(uuid.uuid4()), agent_type=kind,
                        binary='b', topic='t', host=f'host{n}',
                        admin_state_up=True,
                        configurations=jsonutils.dumps(links),
                        load=0, **{f'{when}_at': datetime.datetime.now()
                                   for when in ('created', 'started')},
                        heartbeat_timestamp=datetime.datetime.now())
        self.assertEqual({'host0': '192.0.2.1', 'host1': '192.0.2.2'},
                         sfc_db.tunnels())

    def test_each_host_of_a_chain_gets_it_with_its_path(self):
        agents = {'host1': '192.0.2.1', 'host2': '192.0.2.2'}
        self.useFixture(fixtures.MockPatch(
            'neutron_clickos.sfc.sfc_db.tunnels', return_value=agents))
        self.set_segments()
        for port, host in (('one', 'host1'), ('two', 'host2'),
                           ('three', 'host2')):
            self.insert('ml2_port_bindings', port_id=port, host=host,
                        vif_type='vale', vif_details=_DETAILS,
                        status='ACTIVE')
        pair = {'id': 'pair', 'project_id': 'us', 'ingress': 'two',
                'egress': 'three', 'service_function_parameters': {}}
        flow = {'id': 'flow', 'project_id': 'us', 'protocol': 'tcp',
                'logical_source_port': 'one'}
        chain = {'id': 'chain', 'chain_id': 5, 'project_id': 'us',
                 'port_pair_groups': ['group'], 'flow_classifiers': ['flow']}
        sfc, flows = mock.Mock(), mock.Mock()
        sfc.get_port_pairs.return_value = [pair]
        sfc.get_port_pair_groups.return_value = [
            {'id': 'group', 'port_pairs': ['pair']}]
        sfc.get_port_chains.return_value = [chain]
        flows.get_flow_classifiers.return_value = [
            flow, {'id': 'of another chain', 'logical_source_port': 'four'}]
        self.useFixture(fixtures.MockPatch(
            'neutron_clickos.sfc.sfc_db.directory.get_plugin',
            side_effect={'sfc': sfc, 'flow_classifier': flows}.get))
        for host, address in agents.items():
            found, = sfc_db.chains_of(host)['chains']
            self.assertEqual({'number': 5, 'local': address,
                              'hosts': ['192.0.2.1', '192.0.2.2']},
                             found['path'])
        self.assertEqual({'chains': [], 'kept': [], 'rights': {},
                          'places': {}, 'reasons': {}},
                         sfc_db.chains_of('host3'))
        self.assertEqual(['host1', 'host2'], sfc_db.hosts())
        agents.clear()
        why = ('not ready: ports on several hosts, of which one has no'
               ' tunnel_ip; choose ports on one host, or let the operator set'
               ' tunnel_ip of [clickos_agent]')
        with self.assertLogs(sfc_db.LOG.logger, 'INFO') as logs:
            for _poll in range(2):
                self.assertEqual({'chains': [], 'kept': ['chain'],
                                  'rights': {'chain': []},
                                  'places': {'chain': [['vale0', 101],
                                                       ['vale7', 4096 + 9]]},
                                  'reasons': {'chain': why}},
                                 sfc_db.chains_of('host1'))
            agents['host1'] = agents['host2'] = '192.0.2.1'
            sfc_db.chains_of('host1')
        self.assertEqual([f'Port chain chain: {why}',
                          'Port chain chain: is ready'],
                         [record.getMessage() for record in logs.records])
        self.assert_stays_while_parts_are_missing(sfc, flows)
        chain['flow_classifiers'].clear()
        self.assertEqual({
            'chains': [], 'kept': [], 'rights': {}, 'places': {}, 'reasons': {
                'chain': 'not ready: no hop or no classifier'}},
            sfc_db.chains_of('host1'))
        sfc.get_port_chains.return_value = []
        sfc_db.chains_of('host1')
        self.assertEqual({}, sfc_db._reasons._known)

    def set_segments(self):
        """Let hosts carry two of the networks, and of one a segment."""
        conf.register_opts(cfg.CONF)
        for name, value in (('switch_mappings', ['physnet1:vale0']),
                            ('tunnel_switch', 'vale7')):
            cfg.CONF.set_override(name, value, 'ml2_vale')
            self.addCleanup(cfg.CONF.clear_override, name, 'ml2_vale')
        self.insert_resource('networks', id='other', project_id='owner')
        self.insert_port('four', 'us', 4, 'other')
        for number, (network, kind, physical, segment) in enumerate((
                ('net', 'vlan', 'physnet1', 101), ('net', 'vlan', 'x', 102),
                ('net', 'vxlan', None, 9), ('net', 'gre', None, 8),
                ('other', 'vlan', 'physnet1', 103))):
            self.insert_resource(
                'networksegments', id=f'segment{number}', network_id=network,
                network_type=kind, physical_network=physical,
                segmentation_id=segment, is_dynamic=False,
                segment_index=number)

    def assert_stays_while_parts_are_missing(self, sfc, flows):
        """A group may name a pair that came after the pairs were read."""
        pair, = sfc.get_port_pairs()
        for method, found in (
                (sfc.get_port_pairs, []), (sfc.get_port_pair_groups, []),
                (flows.get_flow_classifiers, []),
                (sfc.get_port_pairs, [{**pair, 'ingress': 'gone'}])):
            complete, method.return_value = method.return_value, found
            self.assertEqual({'chains': [], 'kept': ['chain'],
                              'rights': {'chain': None},
                              'places': {'chain': None}, 'reasons': {}},
                             sfc_db.chains_of('host1'))
            method.return_value = complete

    def test_an_update_keeps_the_order_of_its_groups(self):
        for n, group in enumerate('abcd'):
            self.insert('sfc_port_pair_groups', id=group, group_id=n,
                        tap_enabled=False)
        self.insert('sfc_port_chains', id='chain', chain_id=1)
        new = plugin.SfcPlugin.__new__(plugin.SfcPlugin)
        context = neutron_context.get_admin_context()
        for count in range(1, 5):
            for wanted in itertools.permutations('abcd', count):
                with db_api.CONTEXT_WRITER.using(context):
                    chain = new._get_port_chain(context, 'chain')
                    new._setup_chain_group_associations(context, chain,
                                                        wanted)
                    self.assertEqual(wanted, self.groups(chain))
                with db_api.CONTEXT_READER.using(context):
                    chain = new._get_port_chain(context, 'chain')
                    self.assertEqual(wanted, self.groups(chain))

    def groups(self, chain):
        return tuple(each.portpairgroup_id
                     for each in chain.chain_group_associations)

    def test_ports_that_chains_need_are_not_deleted(self):
        self.insert('sfc_port_pairs', id='pair', ingress='one', egress='two')
        self.insert('sfc_flow_classifiers', id='flow',
                    logical_destination_port='three')
        for port, user in (('one', 'port pair pair'),
                           ('two', 'port pair pair'),
                           ('three', 'flow classifier flow')):
            caught = self.assertRaises(plugin.PortInUse, self.delete, port)
            self.assertIn(f'port {port}: is in {user};', str(caught))
        self.delete('other')

# SPDX-License-Identifier: Apache-2.0
"""The RPC endpoint against a cosmosd double behind a real socket."""

from unittest import mock

from clickos_client import rpc as client_rpc
import cosmos_client
import fixtures
import testtools

from clickos_agent import rpc
from tests.unit import cosmosd

UUID = '11111111-2222-4333-8444-555555555555'
MISSING = '99999999-2222-4333-8444-555555555555'


class EndpointTest(testtools.TestCase):

    def setUp(self):
        super().setUp()
        self.useFixture(fixtures.FakeLogger())
        self.cosmosd = self.useFixture(cosmosd.FakeCosmosd())
        self.cosmosd.guests[UUID] = {'uuid': UUID}
        self.endpoint = rpc.Endpoint(
            cosmos_client.CosmosClient(self.cosmosd.path, 60))

    def call(self, method, **args):
        return getattr(self.endpoint, method)({}, **args)

    def refused(self, code, part, method, **args):
        error = self.call(method, **args)['error']
        self.assertEqual(code, error['code'])
        self.assertIn(part, error['message'])

    def test_list(self):
        self.assertEqual(
            {'handlers': [{'name': 'c.count', 'read': True,
                           'write': False}]},
            self.call('handler_list', server_id=UUID))

    def test_read(self):
        self.assertEqual({'value': 'c.count=1'}, self.call(
            'handler_read', server_id=UUID, name='c.count'))

    def test_several_reads(self):
        self.assertEqual(
            {'values': [{'value': 'a.x=1'}, {'error': {
                'code': 'no-such-handler', 'message': 'none.x'}}]},
            self.call('handlers_read', server_id=UUID,
                      names=['a.x', 'none.x']))
        self.assertEqual({'uuid': UUID, 'names': ['a.x', 'none.x'],
                          'timeout_ms': 5000},
                         self.cosmosd.args('handlers-read'))

    def test_a_read_with_a_parameter(self):
        self.assertEqual({'value': 'r.lookup=192.0.2.1'}, self.call(
            'handler_read', server_id=UUID, name='r.lookup',
            param='192.0.2.1'))
        self.assertEqual('192.0.2.1',
                         self.cosmosd.args('handler-read')['param'])

    def test_several_reads_with_parameters(self):
        self.assertEqual(
            {'values': [{'value': 'r.lookup=::1'}, {'value': 'a.x=1'}]},
            self.call('handlers_read', server_id=UUID,
                      names=['r.lookup', 'a.x'], params=['::1', '']))
        self.assertEqual(['::1', ''],
                         self.cosmosd.args('handlers-read')['params'])

    def test_write(self):
        writes = [['fw.config', 'deny all'], ['fw.log', '']]
        self.assertEqual(cosmosd.taken(7), self.call(
            'handler_write', server_id=UUID, change_id={'number': 7},
            writes=writes))
        self.assertEqual({'uuid': UUID, 'writes': writes,
                          'change_id': {'number': 7}, 'timeout_ms': 5000},
                         self.cosmosd.args('handler-write'))

    def test_replace(self):
        self.assertEqual({**cosmosd.taken(7), 'generation': 2},
                         self.replace('Idle;', 'a.click'))
        self.assertEqual(
            {'uuid': UUID, 'config': 'Idle;',
             'config_name': 'a.click', 'change_id': {'number': 7},
             'timeout_ms': 5000}, self.cosmosd.args('router-install'))

    def replace(self, config, config_name):
        return self.call('config_replace', server_id=UUID,
                         change_id={'number': 7}, config=config,
                         config_name=config_name)

    def test_a_refused_replacement(self):
        self.cosmosd.faults['router-install'] = ('bad-config', 'a:1:1: why')
        self.assertEqual(
            {'error': {'code': 'bad-config', 'message': 'a:1:1: why'}},
            self.replace('Idle', 'a'))

    def test_ports_of_a_guest(self):
        self.assertEqual(
            [], [port for port in self.call('port_list', server_id=UUID)[
                'ports'] if port['closed']])
        self.assertEqual({'uuid': UUID}, self.cosmosd.args('vif-list'))

    def test_flows(self):
        self.assertEqual({'value': 'nat.state=3'}, self.call(
            'flows_read', server_id=UUID, element='nat', part=3))
        self.assertEqual({'uuid': UUID, 'name': 'nat.state', 'param': '3',
                          'timeout_ms': 5000},
                         self.cosmosd.args('handler-read'))
        writes = [['nat.merge', 'x'], ['nat.block_new_flows', '60'],
                  ['nat.hold', '0']]
        self.assertEqual({}, self.call('flows_write', server_id=UUID,
                                       writes=writes))
        self.assertEqual({'uuid': UUID, 'writes': writes,
                          'timeout_ms': 5000},
                         self.cosmosd.args('handler-write'))
        self.refused('bad-request', 'fw.config: not a flow handler',
                     'flows_write', server_id=UUID,
                     writes=[*writes, ['fw.config', '']])
        self.refused('bad-request', 'change_id: unknown argument',
                     'flows_write', server_id=UUID, writes=writes,
                     change_id={'number': 1})

    def test_chain_counters(self):
        counters = {'packets': 5, 'bytes': 300, 'dropped': 1}
        self.cosmosd.chains = [
            {'chain': 'mine', 'counters': {}, 'hops': []},
            {'chain': UUID, 'counters': counters,
             'hops': [{'pairs': ['a', 'b']}], 'hop_counters': [counters],
             'live_pairs': [1]}]
        self.assertEqual(
            {**counters, 'hops': [{**counters, 'pairs': 2, 'live_pairs': 1}]},
            self.call('chain_counters', chain_id=UUID))
        self.refused('not-active', 'port chain', 'chain_counters',
                     chain_id=UUID.replace('1', '2'))
        self.refused('bad-request', 'chain_id', 'chain_counters',
                     chain_id='mine')

    def test_a_tenant_reads_why_a_chain_is_not_ready(self):
        self.endpoint._reason = {UUID: 'not ready: no bound pair'}.get
        self.refused('not-active', f'port chain {UUID}: not ready: no bound',
                     'chain_counters', chain_id=UUID)
        self.refused('not-active', 'the switch does not have it',
                     'chain_counters', chain_id=MISSING)

    def test_cosmosds_errors_pass(self):
        for attempt, code in enumerate((
                'no-such-handler', 'handler-error', 'dead-guest', 'timeout',
                'not-permitted'), 1):
            self.cosmosd.faults['handler-write'] = (code, 'fw.config: why')
            self.assertEqual(
                {'error': {'code': code, 'message': 'fw.config: why'}},
                self.call('handler_write', server_id=UUID,
                          change_id={'number': attempt},
                          writes=[['fw.config', 'x']]))
        self.refused('no-such-guest', MISSING, 'handler_list',
                     server_id=MISSING)

    def test_cosmosd_learns_of_secrets(self):
        self.call('handler_write', server_id=UUID, change_id={'number': 1},
                  writes=[['fw.config', 'x']], has_secrets=True)
        self.assertIs(True, self.cosmosd.args('handler-write')['has_secrets'])

    def test_the_guest_has_the_time_of_the_request(self):
        self.call('handler_list', server_id=UUID, timeout_ms=700)
        self.assertEqual({'uuid': UUID, 'timeout_ms': 700},
                         self.cosmosd.args('handler-list'))

    def test_cosmosd_away(self):
        self.cosmosd.stop()
        self.refused('unavailable', self.cosmosd.path, 'handler_list',
                     server_id=UUID)

    def test_own_failure_is_no_traceback(self):
        client = mock.create_autospec(cosmos_client.CosmosClient,
                                      instance=True)
        client.call.side_effect = RuntimeError('secret')
        self.endpoint = rpc.Endpoint(client)
        answer = self.call('handler_list', server_id=UUID)
        self.assertEqual('internal', answer['error']['code'])
        self.assertNotIn('secret', str(answer))

    def test_cosmosd_judges_the_arguments(self):
        for method, args in (
                ('handler_list', {'server_id': None}),
                ('handler_list', {'server_id': 7}),
                ('handler_read', {'server_id': UUID, 'name': None}),
                ('handlers_read', {'server_id': UUID, 'names': 'a'}),
                ('handler_write', {'server_id': UUID, 'writes': [['a.b']],
                                   'change_id': {'number': 1}}),
                ('handler_write', {'server_id': UUID, 'writes': [['a.b', '']],
                                   'change_id': {'number': '1'}})):
            answer = self.call(method, **args)
            self.assertEqual('bad-request', answer['error']['code'], args)

    def test_a_caller_sets_no_more_than_a_row_says(self):
        good = {'name': 'a.b', 'names': ['a.b'], 'config': 'Idle;',
                'config_name': 'a', 'change_id': {'number': 1}, 'number': 1,
                'writes': [['a.merge', '']]}
        for method, (_, keys) in client_rpc.RELAYED.items():
            args = {key: good[key] for key in keys & good.keys()}
            for key in ('rid', 'uuid', 'stamp', 'halted'):
                self.refused('bad-request', f'{key}: unknown argument',
                             method, server_id=UUID, **args, **{key: 1})
        self.assertEqual([], self.cosmosd.requests)

    def test_a_change_without_an_id_does_not_reach_cosmosd(self):
        for method, args in (
                ('handler_write', {'writes': [['a.b', '']]}),
                ('config_replace', {'config': 'Idle;', 'config_name': 'a'})):
            for change_id in (None, {}):
                self.refused('bad-request', 'change_id: is missing', method,
                             server_id=UUID, change_id=change_id, **args)
        self.assertEqual([], self.cosmosd.requests)

    def test_cosmosd_judges_numbers(self):
        self.cosmosd.faults['handler-write'] = ('stale', 'it came too late')
        change = {'number': 7, 'incarnation': MISSING}
        self.refused('stale', 'too late', 'handler_write', server_id=UUID,
                     change_id=change, writes=[['a.b', '']])
        self.assertEqual(change,
                         self.cosmosd.args('handler-write')['change_id'])

    def test_fence(self):
        answer = self.call('changes_fence', server_id=UUID, number=7)
        self.assertEqual([], answer['pending'])
        self.assertEqual({'uuid': UUID, 'number': 7},
                         self.cosmosd.args('change-fence'))

    def test_a_service_of_0_3_fences_by_the_old_name(self):
        answer = self.call('changes_settle', server_id=UUID, number=7)
        self.assertEqual(7, answer['newest'])
        self.assertEqual({'uuid': UUID, 'number': 7},
                         self.cosmosd.args('change-fence'))

    def test_a_service_of_before_0_3(self):
        for method, args in (
                ('handler_write', {'writes': [['a.b', '']]}),
                ('config_replace', {'config': 'Idle;', 'config_name': 'a'})):
            self.assertEqual([7], self.call(
                method, server_id=UUID, attempt=7, incarnation=MISSING,
                **args)['applied'])
            verb = client_rpc.RELAYED[method][0]
            self.assertEqual({'number': 7, 'incarnation': MISSING},
                             self.cosmosd.args(verb)['change_id'])
        self.call('changes_settle', server_id=UUID, attempt=7)
        self.assertEqual({'uuid': UUID, 'number': 7},
                         self.cosmosd.args('change-fence'))

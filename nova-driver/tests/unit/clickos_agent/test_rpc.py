# SPDX-License-Identifier: Apache-2.0
"""The RPC endpoint against a cosmosd double behind a real socket."""

from unittest import mock

from clickos_client import limits
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
            cosmos_client.CosmosClient(self.cosmosd.path, 60), 3)

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
        self.assertEqual({'uuid': UUID, 'names': ['a.x', 'none.x']},
                         self.cosmosd.args('handlers-read'))
        for names in (None, [], 'a', ['a.x'] * 65, [7], [''], ['a' * 256]):
            self.refused('bad-request', 'name', 'handlers_read',
                         server_id=UUID, names=names)

    def test_a_read_with_a_parameter(self):
        self.assertEqual({'value': 'r.lookup=192.0.2.1'}, self.call(
            'handler_read', server_id=UUID, name='r.lookup',
            param='192.0.2.1'))
        self.assertEqual('192.0.2.1',
                         self.cosmosd.args('handler-read')['param'])
        for param, part in ((7, 'expected a text'),
                            ('é' * 128, 'has 256 bytes, the limit is 255')):
            self.refused('bad-request', part, 'handler_read',
                         server_id=UUID, name='r.lookup', param=param)

    def test_several_reads_with_parameters(self):
        self.assertEqual(
            {'values': [{'value': 'r.lookup=::1'}, {'value': 'a.x=1'}]},
            self.call('handlers_read', server_id=UUID,
                      names=['r.lookup', 'a.x'], params=['::1', '']))
        self.assertEqual(['::1', ''],
                         self.cosmosd.args('handlers-read')['params'])
        for params, part in ((['a'], 'a list of 2'), ('ab', 'a list of 2'),
                             (['', None], 'params[1]: expected a text'),
                             (['a' * 256, ''], 'params[0]: has 256 bytes')):
            self.refused('bad-request', part, 'handlers_read',
                         server_id=UUID, names=['r.lookup', 'a.x'],
                         params=params)

    def test_write(self):
        writes = [['fw.config', 'deny all'], ['fw.log', '']]
        self.assertEqual(cosmosd.taken(7), self.call(
            'handler_write', server_id=UUID, attempt=7, writes=writes))
        self.assertEqual({'uuid': UUID, 'writes': writes,
                          'stamp': {'number': 7}, 'timeout_ms': 3000,
                          'has_secrets': False},
                         self.cosmosd.args('handler-write'))

    def test_replace(self):
        self.assertEqual(cosmosd.taken(7), self.replace('Idle;', 'a.click'))
        self.assertEqual(
            {'uuid': UUID, 'config': 'Idle;',
             'config_name': 'a.click', 'stamp': {'number': 7},
             'timeout_ms': 3000}, self.cosmosd.args('router-install'))

    def replace(self, config, config_name):
        return self.call('config_replace', server_id=UUID, attempt=7,
                         config=config, config_name=config_name)

    def test_bad_replacements(self):
        for config, name, part in (
                (None, 'a', 'config:'), ('', 'a', 'config:'),
                (' ', 'a', 'config:'), ('a\0', 'a', 'NUL'),
                ('\ud800', 'a', 'surrogate'), ('Idle', None, 'config_name'),
                ('Idle', '../a', 'config_name'), ('Idle', 'a' * 65, '64'),
                ('x' * (limits.CONFIG_BYTES + 1), 'a', 'at most 1048576')):
            error = self.replace(config, name)['error']
            self.assertEqual('bad-request', error['code'])
            self.assertIn(part, error['message'])
        self.assertNotIn('router-install', self.cosmosd.verbs())
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
        self.assertEqual({'uuid': UUID, 'name': 'nat.state',
                          'param': '3'}, self.cosmosd.args('handler-read'))
        writes = [['nat.merge', 'x'], ['nat.hold', '60']]
        self.assertEqual({}, self.call('flows_write', server_id=UUID,
                                       writes=writes))
        self.assertEqual({'uuid': UUID, 'writes': writes,
                          'timeout_ms': 3000},
                         self.cosmosd.args('handler-write'))
        self.refused('bad-request', 'fw.config: is no', 'flows_write',
                     server_id=UUID, writes=[*writes, ['fw.config', '']])
        for part in (-1, 1 << 20, '0', None, True):
            error = self.call('flows_read', server_id=UUID, element='nat',
                              part=part)['error']
            self.assertEqual('bad-request', error['code'])
        self.assertIn('name', self.call('flows_read', server_id=UUID, part=0,
                                        element='')['error']['message'])

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

    def test_uuid_in_cosmosds_form(self):
        self.call('handler_list', server_id=UUID.upper().replace('-', ''))
        self.assertEqual(UUID, self.cosmosd.args('handler-list')['uuid'])

    def test_cosmosds_errors_pass(self):
        for attempt, code in enumerate((
                'no-such-handler', 'handler-error', 'dead-guest', 'timeout',
                'not-permitted'), 1):
            self.cosmosd.faults['handler-write'] = (code, 'fw.config: why')
            self.assertEqual(
                {'error': {'code': code, 'message': 'fw.config: why'}},
                self.call('handler_write', server_id=UUID, attempt=attempt,
                          writes=[['fw.config', 'x']]))
        self.refused('no-such-guest', MISSING, 'handler_list',
                     server_id=MISSING)

    def test_cosmosd_learns_of_secrets(self):
        for number, more in enumerate(({'has_secrets': True}, {}), 1):
            self.call('handler_write', server_id=UUID, attempt=number,
                      writes=[['fw.config', 'x']], **more)
            self.assertEqual(
                'has_secrets' in more,
                self.cosmosd.args('handler-write')['has_secrets'])

    def test_cosmosd_away(self):
        self.cosmosd.stop()
        self.refused('unavailable', self.cosmosd.path, 'handler_list',
                     server_id=UUID)

    def test_own_failure_is_no_traceback(self):
        client = mock.create_autospec(cosmos_client.CosmosClient,
                                      instance=True)
        client.call.side_effect = RuntimeError('secret')
        self.endpoint = rpc.Endpoint(client, 3)
        answer = self.call('handler_list', server_id=UUID)
        self.assertEqual('internal', answer['error']['code'])
        self.assertNotIn('secret', str(answer))

    def test_bad_server_id(self):
        for bad in (None, '', 'x', 7, ['x'], '../' + UUID):
            for method, args in (('handler_list', {}),
                                 ('handler_read', {'name': 'a.b'}),
                                 ('handler_write', {
                                     'attempt': 1, 'writes': [['a.b', '']]})):
                self.refused('bad-request', 'server_id', method,
                             server_id=bad, **args)

    def test_bad_name(self):
        for bad in (None, '', 7, 'x' * 256):
            self.refused('bad-request', 'name', 'handler_read',
                         server_id=UUID, name=bad)

    def test_bad_writes(self):
        good = ['a.b', '']
        for bad, part in ((None, 'writes:'), ([], 'writes:'), ('x', 'writes:'),
                          ({'a': 'b'}, 'writes:'),
                          ([good] * (limits.WRITES + 1), 'writes:'),
                          ([good, 'ab'], 'writes[1]'),
                          ([good, ['a.b']], 'writes[1]'),
                          ([good, ['a.b', 1]], 'writes[1]'),
                          ([good, [1, '']], 'name'),
                          ([['a.b', 'x' * 300000]] * 2, '600000')):
            self.refused('bad-request', part, 'handler_write',
                         server_id=UUID, attempt=1, writes=bad)

    def test_bad_attempt(self):
        for bad in (None, 0, -1, True, '1', 1.5):
            self.refused('bad-request', 'attempt', 'handler_write',
                         server_id=UUID, attempt=bad, writes=[['a.b', '']])

    def test_cosmosd_judges_numbers(self):
        self.cosmosd.faults['handler-write'] = ('stale', 'it came too late')
        self.refused('stale', 'too late', 'handler_write', server_id=UUID,
                     attempt=7, writes=[['a.b', '']], incarnation=MISSING)
        self.assertEqual({'number': 7, 'incarnation': MISSING},
                         self.cosmosd.args('handler-write')['stamp'])
        self.refused('bad-request', 'incarnation', 'handler_write',
                     server_id=UUID, attempt=7, writes=[['a.b', '']],
                     incarnation='x')

    def test_settle(self):
        answer = self.call('changes_settle', server_id=UUID, attempt=7)
        self.assertEqual([], answer['pending'])
        self.assertEqual({'uuid': UUID, 'number': 7},
                         self.cosmosd.args('change-settle'))
        self.refused('bad-request', 'attempt', 'changes_settle',
                     server_id=UUID, attempt=0)

    def test_nothing_bad_reaches_cosmosd(self):
        self.call('handler_write', server_id=UUID, attempt=1,
                  writes=[['a.b', 1]])
        self.call('handler_read', server_id='x', name='a.b')
        self.assertEqual([], self.cosmosd.requests)

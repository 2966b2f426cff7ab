# SPDX-License-Identifier: Apache-2.0
"""Which bus the agent of a host is called on."""

import unittest
from unittest import mock

from clickos_api import errors
from clickos_api.outside import rpc
from clickos_api.state import states
from oslo_config import cfg
import oslo_messaging

from tests.unit.clickos_api import base

_READ = states.Read('h')


class BusTest(base.TestCase):

    def setUp(self):
        super().setUp()
        self.conf.set_override('agent_transport_url',
                               'rabbit://u:p@queue/clickos-{host}',
                               'clickos_api')
        self.addCleanup(self.conf.clear_override, 'agent_transport_url',
                        'clickos_api')
        real = oslo_messaging.get_rpc_transport(self.conf, 'fake:///')
        patch = mock.patch.object(oslo_messaging, 'get_rpc_transport',
                                  autospec=True, return_value=real)
        self.get_transport = patch.start()
        self.addCleanup(patch.stop)

    def buses(self):
        return [call.kwargs['url']
                for call in self.get_transport.call_args_list]

    def test_each_agent_is_called_on_its_own_bus(self):
        agent = rpc.Agent(self.conf)
        self.agent.guests['s'] = {'h': 'v'}
        self.assertEqual('v', agent.handler_read('host1', 's', _READ))
        with self.assertRaises(errors.AgentTimeout) as error, \
                self.assertLogs(rpc.LOG.logger) as logs:
            agent.handler_read('host2', 's', _READ)
        # Nova tells no tenant the name of a host.
        self.assertNotIn('host2', error.exception.message)
        self.assertIn('host2', logs.output[0])
        self.assertEqual(['rabbit://u:p@queue/clickos-host1',
                          'rabbit://u:p@queue/clickos-host2'], self.buses())

    def test_one_connection_serves_all_calls_to_a_host(self):
        agent = rpc.Agent(self.conf)
        self.agent.guests['s'] = {'h': 'v'}
        for _call in range(2):
            agent.handler_read('host1', 's', _READ)
        self.assertEqual(['rabbit://u:p@queue/clickos-host1'], self.buses())

    def test_a_name_cannot_leave_its_place_in_the_url(self):
        self.assertEqual('rabbit://u:p@queue/clickos-a%2F..%40b',
                         rpc.transport_url(self.conf, 'a/..@b'))

    def test_without_a_template_all_share_the_own_bus(self):
        self.conf.set_override('agent_transport_url', None, 'clickos_api')
        self.assertIsNone(rpc.transport_url(self.conf, 'host1'))


class HostileAnswersTest(unittest.TestCase):
    """What a compute host may send."""

    def test_an_answer_that_does_not_fit_is_refused(self):
        for method, answer in (
                ('handler_list', {'handlers': [{'name': 7}]}),
                ('handler_read', {'value': None}), ('handler_read', ['x']),
                ('handler_write', {'applied': ['1']}),
                ('changes_fence', {'applied': []}),
                ('port_list', {'ports': {}})):
            with self.assertRaisesRegex(
                    errors.BadGateway, 'cannot be understood') as error:
                rpc._checked('host1', method, answer)
            self.assertNotIn('host1', error.exception.message)

    def test_a_log_has_no_text_of_a_hostile_host(self):
        for answer in ('x' * 9000 + '\nline', {'error': {
                'code': 'c' * 9000, 'message': 'm' * 9000 + '\nline'}},
                       {'error': 'line\n'}):
            with self.assertLogs(rpc.LOG.logger) as logs:
                with self.assertRaises(errors.ApiError):
                    raise rpc._error('host1', answer) if 'error' in answer \
                        else rpc._checked('host1', 'port_list', answer)
            (line,) = logs.output
            self.assertLess(len(line), 1300)
            self.assertNotIn('\n', line)

    def test_a_tenant_reads_no_path_of_a_host(self):
        for code, status in (('unavailable', 502), ('state-dir', 507),
                             ('dead-guest', 409)):
            with self.assertLogs(rpc.LOG.logger) as logs:
                error = rpc._error('host1', {'error': {
                    'code': code, 'message': 'on /run/cosmosd.sock: no'}})
            self.assertEqual((status, 'on ...: no'),
                             (error.status, error.message))
            self.assertIn('/run/cosmosd.sock', logs.output[0])

    def test_a_tenant_reads_the_words_of_its_guest(self):
        with self.assertNoLogs(rpc.LOG.logger):
            error = rpc._error('host1', {'error': {
                'code': 'handler-error', 'message': 'probe: /health: no'}})
        self.assertEqual('probe: /health: no', error.message)

    def test_counters_are_numbers(self):
        port = rpc._port({'mac': 'x', 'link_up': True, 'counters': {
            'rx_packets': 1, 'new': 2, 'evil': {'a': 1}}})
        self.assertEqual({'rx_packets': 1, 'new': 2}, port['counters'])


class AgentOf03:
    """An agent of release 0.3, in which one method has another name."""

    target = oslo_messaging.Target(version='1.8')

    def __init__(self):
        self.calls = []

    def handler_write(self, context, server_id=None, change_id=None,
                      writes=None, timeout_ms=None):
        self.calls.append((change_id, timeout_ms))
        return {'applied': [change_id['number']], 'incarnation': 'i'}

    def changes_settle(self, context, server_id=None, number=None):
        self.calls.append(number)
        return {'newest': number, 'incarnation': 'i', 'applied': [],
                'refused': [], 'pending': []}


class OldAgent:
    """An agent of before 0.3, whose arguments have other names."""

    target = oslo_messaging.Target(version='1.7')

    def __init__(self):
        self.calls = []

    def handler_read(self, context, server_id=None, name=None, param=None):
        return {'value': name}

    def handler_write(self, context, server_id=None, attempt=None,
                      writes=None, incarnation=None, has_secrets=False):
        return self._accept(attempt, incarnation)

    def config_replace(self, context, server_id=None, attempt=None,
                       config=None, config_name=None, incarnation=None):
        return self._accept(attempt, incarnation)

    def changes_settle(self, context, server_id=None, attempt=None):
        return {'newest': attempt, 'incarnation': 'i', 'applied': [],
                'refused': [], 'pending': []}

    def _accept(self, number, incarnation):
        self.calls.append((number, incarnation))
        return {'applied': [number], 'incarnation': 'i'}


class OldAgentTest(base.TestCase):
    """A service that is upgraded before the hosts."""

    def setUp(self):
        super().setUp()
        self.old, self.before = OldAgent(), AgentOf03()
        for name, endpoint in (('old', self.old), ('0.3', self.before)):
            server = oslo_messaging.get_rpc_server(
                oslo_messaging.get_rpc_transport(cfg.CONF, 'fake:///'),
                oslo_messaging.Target(topic='clickos-agent', server=name),
                [endpoint])
            server.start()
            self.addCleanup(server.wait)
            self.addCleanup(server.stop)
        self.bus = rpc.Agent(self.conf)

    def test_one_of_0_3_is_asked_by_the_old_name_and_as_now_otherwise(self):
        for number in (5, 6):
            self.assertEqual(number, self.bus.changes_fence(
                '0.3', 's', number)['newest'])
        self.bus.handler_write('0.3', 's', states.ChangeId(7, 'i'),
                               [['a.b', 'c']])
        guest_ms = self.conf.clickos_api.guest_timeout * 1000
        self.assertEqual(
            [5, 6, ({'number': 7, 'incarnation': 'i'}, guest_ms)],
            self.before.calls)

    def test_it_is_asked_in_its_words(self):
        self.assertEqual('h', self.bus.handler_read('old', 's', _READ))
        change = states.ChangeId(7, 'i')
        for accepted in (
                self.bus.handler_write('old', 's', change, [['a.b', 'c']]),
                self.bus.config_replace('old', 's', states.ChangeId(8),
                                        'Idle;', 'x')):
            self.assertEqual('i', accepted.incarnation)
        self.assertEqual([(7, 'i'), (8, None)], self.old.calls)
        self.assertEqual(
            9, self.bus.changes_fence('old', 's', 9)['newest'])

    def test_what_it_has_not_is_told(self):
        with mock.patch.object(OldAgent, 'target',
                               oslo_messaging.Target(version='1.3')):
            with self.assertRaisesRegex(errors.BadGateway,
                                        'an earlier release and has no '
                                        'handlers_read; upgrade it'):
                self.bus.handlers_read('old', 's', [_READ])

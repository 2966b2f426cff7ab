# SPDX-License-Identifier: Apache-2.0
"""Handlers over HTTP: success, refusal, silence."""

import unittest
import uuid

from clickos_client import outcomes

from tests.unit.clickos_api import base


class HandlersTest(base.TestCase):
    """A member of the project that owns the server."""

    def test_lists_handlers(self):
        status, body = self.call('GET', self.handlers())
        self.assertEqual(200, status)
        self.assertEqual(
            {'handlers': [{'name': 'fw.config', 'read': True,
                           'write': True}]}, body)

    def test_lists_ports_with_their_counters(self):
        path = self.handlers().replace('/handlers', '/ports')
        self.assertEqual(
            (200, {'ports': [{
                'id': None, 'mac_address': '02:00:00:00:00:01',
                'link_up': True, 'counters': {
                    'rx_packets': 4, 'dropped_spoof': 3,
                    'dropped_full': 0}}]}), self.call('GET', path))
        for broken in ({'ports': 7}, {'ports': [{}]}, {'ports': [
                {'mac': 'x', 'link_up': True, 'counters': {'a': 'b'}}]}):
            self.agent.broken = broken
            self.assertEqual(502, self.call('GET', path)[0])

    def test_reads_a_handler(self):
        self.assertEqual(
            (200, {'name': 'fw.config', 'value': 'deny all'}),
            self.call('GET', self.handlers('/fw.config')))

    def test_a_compound_name_keeps_its_slashes(self):
        self.agent.guests[self.server_id]['a/b.count'] = '7'
        for path in ('/a/b.count', '/a%2Fb.count'):
            self.assertEqual((200, {'name': 'a/b.count', 'value': '7'}),
                             self.call('GET', self.handlers(path)))

    def test_writes_and_records(self):
        self.assertEqual((200, {'revision': 1}), self.put('allow icmp'))
        self.assertEqual('allow icmp',
                         self.agent.guests[self.server_id]['fw.config'])
        self.assertEqual({'revision': 1,
                          'writes': [['fw.config', 'allow icmp']]},
                         self.state())

    def test_keeps_the_last_value_in_order_of_last_write(self):
        self.put('1', 'a.x')
        self.put('2', 'b.x')
        status, body = self.call('POST', self.handlers(), json={
            'writes': [['a.x', '3'], ['c.x', '4'], ['a.x', '5']]})
        self.assertEqual((200, {'revision': 3}), (status, body))
        self.assertEqual(
            {'revision': 3,
             'writes': [['b.x', '2'], ['c.x', '4'], ['a.x', '5']]},
            self.state())

    def test_a_refused_value_is_not_recorded(self):
        self.put('good')
        self.assertError(400, 'handler-error', 'fw.config: bad value',
                         self.put('bad'))
        self.assertEqual({'revision': 1, 'writes': [['fw.config', 'good']]},
                         self.state())
        self.assertEqual((200, {'revision': 2}), self.put('good again'))

    def test_a_refused_batch_leaves_nothing(self):
        answer = self.call('POST', self.handlers(), json={
            'writes': [['a.x', '1'], ['b.x', 'bad']]})
        self.assertError(400, 'handler-error', 'b.x', answer)
        self.assertUnchanged()

    def assertUnchanged(self):
        self.assertEqual([], self.call('GET', self.state_path())[1]['writes'])

    def test_unknown_handler(self):
        self.assertError(404, 'no-such-handler', 'fw.nope',
                         self.call('GET', self.handlers('/fw.nope')))

    def test_dead_guest(self):
        del self.agent.guests[self.server_id]
        self.assertError(409, 'no-such-guest', self.server_id,
                         self.put('allow'))
        self.assertUnchanged()

    def test_a_host_without_room_refuses_with_its_reason(self):
        why = 'state_dir: ledgers/x.json: No space left on device'
        self.agent.broken = {'error': {'code': 'state-dir', 'message': why}}
        self.assertError(507, 'state-dir', why, self.put('allow'))
        self.assertUnchanged()
        change = self.call('GET', self.handlers().replace(
            'handlers', 'changes'))[1]['changes'][0]
        self.assertEqual(('refused', {'code': 'state-dir', 'message': why}),
                         (change['status'], change['error']))
        self.agent.broken = None
        self.assertEqual((200, {'revision': 1}), self.put('allow'))

    def test_a_guest_whose_kernel_is_not_clicks(self):
        why = 'guest g: its kernel is not Click\'s'
        self.agent.broken = {'error': {'code': 'unsupported',
                                       'message': why}}
        self.assertError(409, 'unsupported', why, self.put('allow'))
        self.assertError(409, 'unsupported', why,
                         self.call('GET', self.handlers()))
        self.assertUnchanged()

    def test_silent_agent(self):
        self.cloud.add_server(self.server_id, self.project_id, 'host2')
        change = self.assertPending(self.put('allow'))
        self.assertEqual('pending', self.call('GET', change)[1]['change'][
            'status'])
        answer = self.call('GET', self.handlers())
        self.assertError(504, 'timeout', "the guest's host", answer)
        # Nova tells a tenant no names of hosts.
        self.assertNotIn('host2', str(answer))

    def test_the_address_of_a_change_below_a_folder_of_the_site(self):
        self.cloud.add_server(self.server_id, self.project_id, 'host2')
        answer = self.client.put(
            self.handlers('/fw.config'), json={'value': 'allow'},
            headers={'X-Auth-Token': self.token},
            environ_overrides={'SCRIPT_NAME': '/nfv'})
        number = answer.get_json()['change']['number']
        self.assertEqual(
            f'http://localhost/nfv/v1/servers/{self.server_id}/changes/'
            f'{number}', answer.headers['Location'])

    def test_server_without_a_host(self):
        self.cloud.add_server(self.server_id, self.project_id, None)
        self.assertError(409, 'dead-guest', 'no host', self.put('allow'))

    def test_failing_agent_shows_no_traceback(self):
        self.agent.broken = 'raise'
        status, body = self.call('GET', self.assertPending(
            self.put('allow')))
        self.assertEqual('pending', body['change']['status'])
        self.assertNotIn('AgentBug', str(body))

    def test_nonsense_from_the_agent(self):
        for broken in ([], {'error': 'x'}, {'value': 5}, {'handlers': [1]}):
            self.agent.broken = broken or 'text'
            for path in ('', '/fw.config'):
                status, body = self.call('GET', self.handlers(path))
                self.assertEqual((502, 'agent-failed'),
                                 (status, body['error']['code']))

    def test_unknown_error_code_is_a_bad_gateway(self):
        self.agent.broken = {'error': {'code': 'odd', 'message': 'full'}}
        self.assertError(502, 'odd', 'full', self.put('allow'))


class VnfTest(base.TestCase):
    """The same by VNF instance."""

    def setUp(self):
        super().setUp()
        self.vnf_id = str(uuid.uuid4())
        self.path = f'/v1/vnfs/{self.vnf_id}/handlers/fw.config'

    def test_single_guest(self):
        self.cloud.add_vnf(self.vnf_id, self.project_id,
                           [(self.server_id, 'VDU1', 'vnfc-1')])
        self.assertEqual(
            (200, {'name': 'fw.config', 'value': 'deny all'}),
            self.call('GET', self.path))
        self.assertEqual((200, {'revision': 1}),
                         self.call('PUT', self.path, json={'value': 'x'}))
        self.assertEqual([['fw.config', 'x']], self.state()['writes'])

    def test_several_guests_need_a_name(self):
        other = str(uuid.uuid4())
        self.cloud.add_vnf(self.vnf_id, self.project_id,
                           [(self.server_id, 'VDU1', 'vnfc-1'),
                            (other, 'VDU1', 'vnfc-2')])
        self.assertError(400, 'bad-request', 'VDU1 vnfc-2',
                         self.call('GET', self.path))
        self.assertEqual(
            200, self.call('GET', self.path + '?vnfc=vnfc-1')[0])
        self.assertError(404, 'no-such-vnfc', 'vnfc-9',
                         self.call('GET', self.path + '?vnfc=vnfc-9'))

    def test_not_instantiated(self):
        self.cloud.add_vnf(self.vnf_id, self.project_id, [],
                           'NOT_INSTANTIATED')
        self.assertError(409, 'not-instantiated',
                         outcomes.no_guest(self.vnf_id, False),
                         self.call('GET', self.path))

    def test_a_vnf_without_guests_during_a_heal(self):
        self.cloud.add_vnf(self.vnf_id, self.project_id, [])
        self.assertError(503, 'guest-replaced',
                         outcomes.no_guest(self.vnf_id, True),
                         self.call('GET', self.path))

    def test_tacker_is_asked_once_in_a_while(self):
        """For reads, for each token; a heal counts at once."""
        self.conf.set_override('server_cache_ttl', 30, 'clickos_api')
        self.addCleanup(self.conf.clear_override, 'server_cache_ttl',
                        'clickos_api')
        self.cloud.add_vnf(self.vnf_id, self.project_id,
                           [(self.server_id, 'VDU1', 'vnfc-1')])
        vnf_path = f'/v1/vnfs/{self.vnf_id}/handlers'

        def asked(call, *arguments, **more):
            self.cloud.asked.clear()
            self.assertEqual(200, self.call(call, *arguments, **more)[0])
            return sum('vnf_instances' in path
                       for path, _token in self.cloud.asked)
        self.assertEqual(1, asked('GET', vnf_path))
        self.assertEqual(0, asked('GET', vnf_path + '/fw.config'))
        self.assertEqual(1, asked('PUT', vnf_path + '/fw.config',
                                  json={'value': 'x'}))
        self.assertEqual(1, asked('GET', vnf_path, self.caller(
            self.project_id, 'reader')))
        other = str(uuid.uuid4())
        self.cloud.add_server(other, self.project_id)
        self.agent.guests[other] = {'fw.config': 'healed'}
        self.cloud.add_vnf(self.vnf_id, self.project_id,
                           [(other, 'VDU1', 'vnfc-1')])
        del self.cloud.servers[self.server_id]
        self.agent.guests.pop(self.server_id)
        self.agent.broken = None
        answer = self.call('GET', vnf_path + '/fw.config')
        self.assertEqual((200, 'healed'), (answer[0], answer[1]['value']))

    def test_unknown_vnf(self):
        self.assertError(404, 'no-such-vnf', self.vnf_id,
                         self.call('GET', self.path))

    def test_a_vim_cannot_claim_another_projects_server(self):
        victim = str(uuid.uuid4())
        self.cloud.add_server(victim, 'victim-project')
        self.agent.guests[victim] = {'fw.config': 'secret'}
        self.cloud.add_vnf(self.vnf_id, self.project_id,
                           [(victim, 'VDU1', 'vnfc-1')])
        self.assertError(404, 'no-such-server', victim,
                         self.call('GET', self.path))
        self.call('PUT', self.path, json={'value': 'mine'})
        self.assertEqual('secret', self.agent.guests[victim]['fw.config'])


if __name__ == '__main__':
    unittest.main()

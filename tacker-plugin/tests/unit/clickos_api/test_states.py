# SPDX-License-Identifier: Apache-2.0
"""States that user_data refers to; restoring; states of servers gone."""

import datetime
import threading
from unittest import mock
import uuid

from clickos_client import document

from clickos_api import errors
from clickos_api.operations import background
from clickos_api.state import desired_state
from clickos_api.state import history
from clickos_api.state import keys
from tests.unit.clickos_api import base

USER_DATA = 'OS-EXT-SRV-ATTR:user_data'
BODY = {'config': 'Idle;', 'config_name': 'fw.click',
        'writes': [['a.x', '1'], ['b.x', '2']]}


class ReferenceTest(base.TestCase):
    """A state of its own id, and servers that start with it."""

    def setUp(self):
        super().setUp()
        self.state_id = self.make_state(**BODY)
        self.path = f'/v1/states/{self.state_id}'
        self.refer(self.server_id)

    def refer(self, server_id):
        self.cloud.servers[server_id][USER_DATA] = document.referring(
            self.state_id)

    def test_a_write_goes_to_the_state(self):
        self.assertEqual((200, {'revision': 2}), self.put('3', 'a.x'))
        status, body = self.call('GET', self.path)
        self.assertEqual((200, [['b.x', '2'], ['a.x', '3']]),
                         (status, body['writes']))
        self.assertEqual(
            {'config': 'Idle;', 'config_name': 'fw.click'},
            body['configuration'])
        self.assertEqual(self.project_id, body['project_id'])
        self.assertEqual(body['writes'],
                         self.call('GET', self.state_path())[1]['writes'])

    def test_the_next_server_has_the_same_state(self):
        self.put('3', 'a.x')
        del self.cloud.servers[self.server_id]
        self.server_id = str(uuid.uuid4())
        self.cloud.add_server(self.server_id, self.project_id)
        self.agent.guests[self.server_id] = {}
        self.refer(self.server_id)
        self.assertEqual((200, {'revision': 3}), self.put('4', 'b.x'))
        self.assertEqual([['a.x', '3'], ['b.x', '4']],
                         self.call('GET', self.path)[1]['writes'])

    def test_a_state_that_exists_keeps_its_writes(self):
        self.put('3', 'a.x')
        self.assertEqual((200, {'id': self.state_id, 'changed': False}),
                         self.call('PUT', self.path, json=BODY))
        self.assertEqual(2, self.call('GET', self.path)[1]['revision'])
        new = {**BODY, 'config': 'Discard;', 'writes': [['c.x', '9'],
                                                        ['a.x', '8']]}
        self.assertEqual((200, {'id': self.state_id, 'changed': True}),
                         self.call('PUT', self.path, json=new))
        body = self.call('GET', self.path)[1]
        self.assertEqual(
            ('Discard;', 3, [['c.x', '9'], ['b.x', '2'], ['a.x', '3']]),
            (body['configuration']['config'], body['revision'],
             body['writes']))

    def test_a_service_sees_it_by_the_server_too(self):
        self.put('3', 'a.x')
        service = self.caller('svc', 'service')
        self.assertEqual(self.call('GET', self.state_path()),
                         self.call('GET', self.state_path(), service))
        self.cloud.failing = True
        self.assertEqual([], self.call('GET', self.state_path(),
                                       service)[1]['writes'])

    def test_it_keeps_the_writes_of_named_handlers(self):
        self.put('3', 'a.x')
        body = {**BODY, 'writes': [['c.x', '9']], 'keep': ['a.x', 'd.x']}
        for _time in range(2):
            self.assertEqual(200, self.call('PUT', self.path, json=body)[0])
            self.assertEqual([['c.x', '9'], ['a.x', '3']],
                             self.call('GET', self.path)[1]['writes'])
        self.assertError(400, 'bad-request', 'keep[0]', self.call(
            'PUT', self.path, json={**BODY, 'keep': ['no handler']}))

    def test_another_project_has_nothing_of_it(self):
        other = self.caller('other', 'member', 'reader')
        for method, body in (('PUT', {'json': BODY}), ('GET', {}),
                             ('DELETE', {})):
            self.assertError(404, 'no-such-state', self.state_id, self.call(
                method, self.path, other, **body))
        theirs = str(uuid.uuid4())
        self.cloud.add_server(theirs, 'other')
        self.agent.guests[theirs] = {}
        self.refer(theirs)
        path = f'/v1/servers/{theirs}'
        for method, suffix, body in (
                ('PUT', '/handlers/a.x', {'json': {'value': 'evil'}}),
                ('GET', '/desired-state', {}),
                ('GET', '/changes', {}),
                ('DELETE', '/desired-state', {}),
                ('POST', '/desired-state', {'json': {'revision': 1}})):
            self.assertError(404, 'no-such-state', 'its project', self.call(
                method, path + suffix, other, **body))
        self.assertEqual(1, self.call('GET', self.path)[1]['revision'])

    def test_a_service_reads_and_deletes_nothing(self):
        service = self.caller('service', 'service', 'member', 'reader')
        path = f'{self.path}?project_id={self.project_id}'
        self.assertEqual(200, self.call('GET', path, service)[0])
        for method, wrong in (('DELETE', path), ('GET', self.path),
                              ('GET', f'{self.path}?project_id=other')):
            self.assertError(404, 'no-such-state', self.state_id,
                             self.call(method, wrong, service))
        self.assertError(400, 'bad-request', 'project_id', self.call(
            'GET', f'{self.path}?project_id={"x" * 65}', service))

    def test_forgetting_brings_the_first_values_back(self):
        self.put('3', 'a.x')
        self.put('4', 'c.x')
        self.assertEqual(204, self.call('DELETE', self.state_path())[0])
        body = self.call('GET', self.path)[1]
        self.assertEqual((BODY['writes'], 'Idle;'), (
            body['writes'], body['configuration']['config']))
        self.assertEqual(4, body['revision'])

    def test_its_owner_deletes_it(self):
        self.assertEqual(204, self.call('DELETE', self.path)[0])
        self.assertEqual(404, self.call('GET', self.path)[0])
        self.assertError(404, 'no-such-state', self.state_id,
                         self.call('DELETE', self.path))

    def test_a_servers_own_state_is_none_of_these(self):
        del self.cloud.servers[self.server_id][USER_DATA]
        self.put('allow')
        self.assertEqual(
            404, self.call('GET', f'/v1/states/{self.server_id}')[0])

    def test_bad_bodies(self):
        for body, words in (
                ({}, '"config" is missing'), ({'config': ''}, 'config'),
                ({'config': 'x', 'writes': 7}, 'writes: expected'),
                ({'config': 'x', 'writes': [['a b', 'c']]}, 'writes[0][0]'),
                ({'config': 'x', 'config_name': '/'}, 'config_name'),
                ({'config': 'x', 'evil': 1}, 'unknown key')):
            for method, path in (('POST', '/v1/states'), ('PUT', self.path)):
                self.assertError(400, 'bad-request', words,
                                 self.call(method, path, json=body))
        large = {'config': 'x', 'writes': [['c.x', 'y' * 1600]]}
        for method, path in (('POST', '/v1/states'), ('PUT', self.path)):
            self.assertError(413, 'too-large', 'the limit is 1500',
                             self.call(method, path, json=large))

    def test_no_caller_chooses_an_id(self):
        other = self.caller('other', 'member', 'reader')
        for state_id in (self.server_id, self.state_id, str(uuid.uuid4())):
            self.assertError(404, 'no-such-state', state_id, self.call(
                'PUT', f'/v1/states/{state_id}', other, json=BODY))
        self.assertError(400, 'bad-request', 'unknown key', self.call(
            'POST', '/v1/states', other, json={**BODY, 'id': self.state_id}))

    def test_an_id_in_two_projects_means_two_states(self):
        store = self.app.extensions['clickos']._service.store
        found = {'config': 'Discard;', 'config_name': 'evil'}
        store._make_row(keys.of_state('other', self.state_id),
                        project_id='other', configuration=found, revision=1,
                        base={'configuration': found, 'writes': []})
        self.assertEqual('Idle;', self.call('GET', self.path)[1][
            'configuration']['config'])
        self.put('3', 'a.x')
        other = self.caller('other', 'member', 'reader')
        body = self.call('GET', self.path, other)[1]
        self.assertEqual(('Discard;', []), (body['configuration']['config'],
                                            body['writes']))


class RestoreTest(base.TestCase):
    """POST desired-state."""

    def restore(self, revision):
        return self.call('POST', self.state_path(),
                         json={'revision': revision})

    def test_earlier_values(self):
        for value in ('1', '2', '3'):
            self.put(value)
        self.assertEqual((200, {'revision': 4}), self.restore(1))
        self.assertEqual('1', self.agent.guests[self.server_id]['fw.config'])
        self.assertEqual((200, {'revision': 4}), self.restore(4))

    def test_a_handler_without_an_earlier_value(self):
        user_data = document.Configuration('First;').user_data()
        self.cloud.servers[self.server_id][USER_DATA] = user_data
        self.put('1', 'a.x')
        self.put('2', 'b.x')
        self.assertEqual((200, {'revision': 4}), self.restore(1))
        self.assertEqual({'config': 'First;', 'a.x': '1'},
                         self.agent.guests[self.server_id])
        self.assertEqual([['a.x', '1']], self.state()['writes'])
        self.assertEqual(200, self.restore(0)[0])
        self.assertEqual({'config': 'First;'},
                         self.agent.guests[self.server_id])

    def test_a_vnf_keeps_its_configuration(self):
        self.put('1', 'a.x')
        self.cloud.servers[self.server_id]['metadata'] = {
            'clickos_vnf': 'some'}
        self.assertError(409, 'owned-by-vnf', 'some', self.restore(0))

    def test_bad_revisions(self):
        for bad in ('1', -1, True, 2 ** 60, None):
            self.assertError(400, 'bad-request', 'revision',
                             self.restore(bad))
        self.assertError(404, 'no-such-revision', 'revision 5',
                         self.restore(5))


class PruneTest(base.TestCase):
    """States whose server Nova no longer has."""

    def setUp(self):
        super().setUp()
        self.background = self.app.extensions['clickos']
        self.store = self.background._service.store

    def test_a_servers_own_state_goes_with_it(self):
        self.put('allow')
        self.background.prune()
        self.assertTrue(self.store.knows(keys.of_server(self.server_id)))
        del self.cloud.servers[self.server_id]
        self.background.prune()
        self.assertFalse(self.store.knows(keys.of_server(self.server_id)))

    def test_nothing_goes_while_nova_is_away(self):
        self.put('allow')
        del self.cloud.servers[self.server_id]
        self.cloud.failing = True
        self.background.prune()
        self.assertTrue(self.store.knows(keys.of_server(self.server_id)))

    def test_a_state_waits_for_the_next_server(self):
        state_id = self.make_state(**BODY)
        key = keys.of_state(self.project_id, state_id)
        self.background.prune()
        self.assertTrue(self.store.knows(key), 'no server yet')
        self.cloud.servers[self.server_id][
            USER_DATA] = document.referring(state_id)
        self.put('3', 'a.x')
        found = self.cloud.servers.pop(self.server_id)
        self.background.prune()
        self.assertTrue(self.store.knows(key))
        self.cloud.servers[self.server_id] = found
        self.background.prune()
        self.assertIsNone(history.servers(self.store, '')[0].gone_at)
        del self.cloud.servers[self.server_id]
        self.background.prune()
        later = desired_state.now() + datetime.timedelta(days=2)
        with mock.patch.object(desired_state, 'now', autospec=True,
                               return_value=later):
            self.background.prune()
        self.assertFalse(self.store.knows(key))

    def test_a_state_without_a_server_goes(self):
        state_id = self.make_state(**BODY)
        key = keys.of_state(self.project_id, state_id)
        later = desired_state.now() + datetime.timedelta(days=2)
        with mock.patch.object(desired_state, 'now', autospec=True,
                               return_value=later):
            self.background.prune()
        self.assertFalse(self.store.knows(key))


class SettleTest(base.TestCase):
    """Verdicts that are asked for."""

    def setUp(self):
        super().setUp()
        self.background = self.app.extensions['clickos']

    def settle(self, hosts, silent=(), limit=500):
        """Settle states, each on a host; return the servers asked about."""
        found = [(f'k{number}', f's{number}', host, 1)
                 for number, host in enumerate(hosts)]
        done, both = [], threading.Barrier(2)

        def known(server_id, host, _number):
            if host.startswith('both'):
                both.wait(60)
            done.append(server_id)
            if host in silent:
                raise errors.AgentTimeout('silent')
            return {}

        def unsettled(_store, _age_s, after, limit):
            return [each for each in found if each[0] > after][:limit]
        with mock.patch.object(history, 'unsettled', unsettled), \
                mock.patch.object(background, '_STATES', limit), \
                mock.patch.object(self.background, '_known', known), \
                mock.patch.object(self.background._service.store, 'settle'):
            self.background.settle()
        return done

    def test_hosts_are_asked_side_by_side(self):
        self.assertEqual(2, len(self.settle(['both 1', 'both 2'])))

    def test_a_silent_host_is_left(self):
        done = self.settle(['a'] * 5 + ['b'] * 5, silent=['a'])
        self.assertEqual({f's{n}' for n in range(5, 10)},
                         {each for each in done if each > 's4'})
        self.assertEqual(7, len(done))

    def test_each_state_has_its_turn(self):
        for wanted in ({'s0', 's1'}, {'s2', 's3'}, {'s4'}, {'s0', 's1'}):
            self.assertEqual(wanted, set(self.settle(
                ['a', 'b', 'a', 'a', 'b'], silent=['a', 'b'], limit=2)))


class LimitTest(base.TestCase):
    """Requests of a project in a minute."""

    def setUp(self):
        super().setUp()
        for name, value in (('requests_per_minute', 6),
                            ('writes_per_minute', 2)):
            self.conf.set_override(name, value, 'clickos_api')
            self.addCleanup(self.conf.clear_override, name, 'clickos_api')
        self.app = base.app.create(self.conf)
        self.client = self.app.test_client()

    def test_rates(self):
        for _ in range(2):
            self.assertEqual(200, self.put('allow')[0])
        self.assertError(429, 'too-many-requests', '2 changes in a minute',
                         self.put('allow'))
        for _ in range(3):
            self.assertEqual(200, self.call('GET', self.handlers())[0])
        answer = self.client.get(self.handlers(),
                                 headers={'X-Auth-Token': self.token})
        self.assertEqual((429, '1'), (answer.status_code,
                                      answer.headers['Retry-After']))
        other = self.caller('other', 'member', 'reader')
        self.assertEqual(404, self.call('GET', self.handlers(), other)[0])

    def started(self, project_id, token):
        """Note a start of a server that has no state; return the answer."""
        server_id = str(uuid.uuid4())
        self.cloud.add_server(server_id, project_id)
        return self.call('POST', f'/v1/states/{server_id}/starts', token,
                         json={'number': 0, 'revision': 0,
                               'incarnation': server_id,
                               'server_id': server_id,
                               'project_id': project_id})

    def test_starts_count_for_the_project_of_the_server(self):
        service = self.caller('services', 'service')
        for _ in range(2):
            self.assertEqual(200, self.started('p', service)[0])
        self.assertError(429, 'too-many-requests', 'project p: ',
                         self.started('p', service))
        self.assertEqual(200, self.started('q', service)[0])
        for project_id, wanted in (*[('p', 404)] * 3, ('p', 429), ('q', 404)):
            self.assertEqual(wanted, self.call(
                'GET', f'/v1/states/{uuid.uuid4()}?project_id={project_id}',
                service)[0])

    def test_a_tenant_takes_no_rate_of_others(self):
        for _ in range(2):
            self.assertEqual(404, self.started('p', self.token)[0])
        self.assertError(429, 'too-many-requests', self.project_id,
                         self.started('p', self.token))

    def test_requests_without_a_route_count(self):
        reader = self.caller(self.project_id, 'reader')
        for method, path in (('PUT', '/v1/catalog'), ('GETS', '/v1/catalog'),
                             ('PUT', '/v1/nothing'), ('GET', '/nothing'),
                             ('HEAD', '/v1/catalog'), ('GET', '/v1')):
            self.assertIn(self.call(method, path, reader)[0],
                          (200, 404, 405), path)
        self.assertError(429, 'too-many-requests', '6 requests in a minute',
                         self.call('GETS', '/v1/catalog', reader))

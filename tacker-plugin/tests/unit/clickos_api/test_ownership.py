# SPDX-License-Identifier: Apache-2.0
"""Who may do what, and what becomes of a server that is gone."""

from unittest import mock
import uuid

import sqlalchemy

from clickos_api.operations import reading
from tests.unit.clickos_api import base
from tests.unit.clickos_api import fake_cloud


class OwnershipTest(base.TestCase):
    """Other projects, other roles."""

    def test_no_token(self):
        answer = self.client.get(self.handlers())
        self.assertEqual(401, answer.status_code)

    def test_another_project_does_not_see_the_server(self):
        other = self.caller('other', 'member', 'reader')
        for answer in (self.call('GET', self.handlers(), other),
                       self.call('GET', self.handlers('/fw.config'), other),
                       self.put('allow', token=other),
                       self.call('GET', self.state_path(), other),
                       self.call('DELETE', self.state_path(), other)):
            self.assertError(404, 'no-such-server', self.server_id, answer)
        self.assertEqual('deny all',
                         self.agent.guests[self.server_id]['fw.config'])

    def test_another_project_cannot_prune_desired_state(self):
        self.put('allow icmp')
        self.call('GET', self.handlers(),
                  self.caller('other', 'member', 'reader'))
        self.assertEqual(1, self.state()['revision'])

    def test_a_reader_may_not_write(self):
        reader = self.caller(self.project_id, 'reader')
        self.assertEqual(200, self.call('GET', self.handlers(), reader)[0])
        self.assertEqual(200, self.call('GET', self.state_path(), reader)[0])
        self.assertError(403, 'forbidden', 'clickos:handler:write',
                         self.put('allow', token=reader))

    def test_a_connection_that_ends_is_made_again(self):
        self.cloud.dropped = 1
        self.assertEqual(200, self.call('GET', self.handlers())[0])
        self.cloud.dropped = 2
        self.assertError(503, 'unavailable', 'compute cannot be asked',
                         self.put('allow'))

    def test_nova_showing_a_server_is_not_enough(self):
        """Nova's administrators see every server; its owner may write."""
        admin = self.caller('admins', 'admin', 'member', 'reader')
        self.cloud.projects[admin] = self.project_id   # Nova shows it
        self.assertError(403, 'forbidden', self.project_id,
                         self.put('allow', token=admin))

    def test_the_owner_deletes_desired_state(self):
        self.put('allow icmp')
        reader = self.caller(self.project_id, 'reader')
        self.assertError(403, 'forbidden', 'desired_state:delete',
                         self.call('DELETE', self.state_path(), reader))
        self.assertEqual(1, self.state()['revision'])
        self.assertEqual(204, self.call('DELETE', self.state_path())[0])
        self.assertEqual(0, self.state()['revision'])

    def test_a_service_reads_without_nova(self):
        self.put('allow icmp')
        self.cloud.failing = True
        for role in ('service', 'admin'):
            token = self.caller('service', role)
            status, body = self.call('GET', self.state_path(), token)
            self.assertEqual((200, 1), (status, body['revision']))

    def test_an_admin_deletes_without_nova(self):
        self.put('allow icmp')
        self.cloud.failing = True
        token = self.caller('admins', 'admin')
        for _ in range(2):
            self.assertEqual(
                204, self.call('DELETE', self.state_path(), token)[0])
        self.assertEqual({'revision': 0, 'writes': []}, self.state())

    def test_a_service_deletes_nothing_of_others(self):
        self.put('allow icmp')
        token = self.caller('service', 'service', 'member', 'reader')
        self.assertError(404, 'no-such-server', self.server_id,
                         self.call('DELETE', self.state_path(), token))
        self.assertEqual(1, self.state()['revision'])

    def test_a_token_of_no_project(self):
        for roles in ((), ('member', 'reader'), ('admin', 'service')):
            token = self.caller(None, *roles)
            for answer in (self.put('allow', token=token),
                           self.call('GET', self.handlers(), token),
                           self.call('GET', self.state_path(), token),
                           self.call('DELETE', self.state_path(), token)):
                self.assertError(403, 'forbidden', 'no project', answer)

    def test_a_server_that_is_gone_is_pruned(self):
        self.put('allow icmp')
        del self.cloud.servers[self.server_id]
        self.assertError(404, 'no-such-server', self.server_id,
                         self.call('DELETE', self.state_path()))
        self.assertEqual({'revision': 0, 'writes': []}, self.state())

    def test_an_unknown_server_costs_nova_one_request(self):
        del self.cloud.servers[self.server_id]
        self.call('GET', self.handlers())
        self.assertEqual(
            [(f'/nova/servers/{self.server_id}', fake_cloud.SERVICE_TOKEN)],
            self.cloud.asked)

    def test_nova_away(self):
        self.cloud.failing = True
        self.assertError(503, 'unavailable', 'compute', self.put('allow'))

    def test_a_request_costs_nova_one_request(self):
        self.put('allow')
        self.assertEqual([fake_cloud.SERVICE_TOKEN],
                         [token for _, token in self.cloud.asked])

    def test_owners_are_remembered_and_still_checked(self):
        self.conf.set_override('server_cache_ttl', 30, 'clickos_api')
        self.addCleanup(self.conf.clear_override, 'server_cache_ttl',
                        'clickos_api')
        for _ in range(3):
            self.assertEqual(200, self.put('allow')[0])
        self.assertEqual(1, len(self.cloud.asked))
        other = self.caller('other', 'member', 'reader')
        self.assertError(404, 'no-such-server', self.server_id,
                         self.put('deny', token=other))
        # The guest moved, so the old host has none: the service asks Nova.
        self.agent.guests['moved'] = self.agent.guests.pop(self.server_id)
        self.assertError(409, 'no-such-guest', self.server_id,
                         self.put('allow'))
        self.assertEqual(2, len(self.cloud.asked))
        self.agent.guests[self.server_id] = self.agent.guests.pop('moved')
        self.assertEqual(200, self.put('allow')[0])

    def test_the_server_of_a_vnf_is_no_other_path_of_nova(self):
        """Tacker has the text from the cloud that a tenant registered."""
        vnf_id = str(uuid.uuid4())
        for text in (f'{self.server_id}/../detail', 'detail?all_tenants=1',
                     f'{self.server_id}?x', '..', 7, ['x']):
            self.cloud.add_vnf(vnf_id, self.project_id, [(text, 'a', 'b')])
            self.cloud.asked.clear()
            self.assertError(503, 'guest-replaced', vnf_id, self.call(
                'GET', f'/v1/vnfs/{vnf_id}/handlers'))
            self.assertEqual([], [
                path for path, _token in self.cloud.asked
                if '/servers' in path])

    def test_ids_are_one_spelling(self):
        self.put('allow')
        path = self.state_path().replace(self.server_id,
                                         self.server_id.upper())
        self.assertEqual(1, self.call('GET', path)[1]['revision'])


class ServiceTest(base.TestCase):
    """The application around the routes."""

    def test_healthcheck_needs_no_token(self):
        self.assertEqual(200, self.client.get('/healthcheck').status_code)

    def test_answers_carry_a_request_id(self):
        answer = self.client.get('/healthcheck')
        self.assertRegex(answer.headers['x-openstack-request-id'],
                         '^req-[0-9a-f-]{36}$')

    def test_unknown_paths_and_methods(self):
        self.assertEqual(404, self.call('GET', '/v2')[0])
        self.assertEqual(404, self.call('GET', '/v1/hosts/x/handlers')[0])
        self.assertEqual('method-not-allowed', self.call(
            'DELETE', self.handlers())[1]['error']['code'])

    def test_an_unexpected_failure_shows_no_traceback(self):
        with mock.patch.object(reading.Reading, 'list', autospec=True,
                               side_effect=ZeroDivisionError('secret')):
            status, body = self.call('GET', self.handlers())
        self.assertEqual((500, 'internal'), (status, body['error']['code']))
        self.assertNotIn('secret', str(body))

    def test_database_away(self):
        engine = sqlalchemy.create_engine(self.conf.database.connection)
        self.addCleanup(engine.dispose)
        with engine.begin() as connection:
            connection.execute(sqlalchemy.text('DROP TABLE desired_state'))
        self.assertError(503, 'unavailable', 'the database',
                         self.put('allow'))
        self.assertEqual('deny all',
                         self.agent.guests[self.server_id]['fw.config'])

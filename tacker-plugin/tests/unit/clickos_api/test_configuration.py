# SPDX-License-Identifier: Apache-2.0
"""Replacing the configuration of a guest that runs on."""

import uuid

from clickos_client import document
from clickos_client import limits

from clickos_api.state import desired_state
from clickos_api.state import states
from tests.unit.clickos_api import base

BODY = {'config': 'Idle;', 'config_name': 'new.click'}
NEW = {**BODY, 'replaces': document.digest('abcd')}


class ConfigurationTest(base.TestCase):
    """A member of the project that owns the server."""

    def setUp(self):
        super().setUp()
        self.cloud.servers[self.server_id][
            'OS-EXT-SRV-ATTR:user_data'] = 'abcd'

    def test_replaces_and_records(self):
        self.put('allow icmp')
        self.assertEqual((200, {'revision': 2}),
                         self.replace(config_name='new.click'))
        self.assertEqual({'config': 'Idle;'},
                         self.agent.guests[self.server_id])
        self.assertEqual({'revision': 2, 'writes': [], 'configuration': NEW},
                         self.state())

    def test_later_writes_come_on_top(self):
        self.replace(config_name='new.click')
        self.put('1', 'a.x')
        self.assertEqual({'revision': 2, 'writes': [['a.x', '1']],
                          'configuration': NEW}, self.state())
        self.assertEqual(204, self.call('DELETE', self.state_path())[0])
        self.assertEqual({'revision': 0, 'writes': []}, self.state())

    def test_the_guests_refusal_is_passed_on(self):
        self.put('allow icmp')
        self.assertError(400, 'bad-config', 'new.click:1:1: w :: Wrong',
                         self.replace('w :: Wrong', config_name='new.click'))
        self.assertEqual({'revision': 1,
                          'writes': [['fw.config', 'allow icmp']]},
                         self.state())

    def test_a_vnfs_configuration_is_its_descriptors(self):
        vnf_id = str(uuid.uuid4())
        self.cloud.servers[self.server_id]['metadata'] = {
            'clickos_vnf': vnf_id}
        self.assertError(409, 'owned-by-vnf', vnf_id, self.replace())
        self.cloud.add_vnf(vnf_id, self.project_id,
                           [(self.server_id, 'fw', 'vnfc1')])
        self.assertError(409, 'owned-by-vnf', vnf_id, self.call(
            'PUT', f'/v1/vnfs/{vnf_id}/configuration', json=BODY))
        self.assertIn('fw.config', self.agent.guests[self.server_id])

    def test_bad_bodies(self):
        for config, more, words in (
                (7, {}, 'config: expected a Click configuration, got 7'),
                (' ', {}, 'config: '), ('a\0', {}, 'NUL'),
                ('Idle', {'config_name': '../x'}, 'config_name'),
                ('Idle', {'x': 1}, "unknown key 'x'"),
                ('x' * (limits.CONFIG_BYTES + 1), {}, 'at most 1048576')):
            self.assertError(400, 'bad-request', words,
                             self.replace(config, **more))
        path = f'/v1/servers/{self.server_id}/configuration'
        for body, words in (({}, '"config" is missing'), ([], 'an object')):
            self.assertError(400, 'bad-request', words,
                             self.call('PUT', path, json=body))

    def test_the_longest_configuration(self):
        self.assertEqual(200, self.replace('\x01' * limits.CONFIG_BYTES)[0])


class StoreTest(base.TestCase):
    """A replacement without an answer among writes."""

    def test_in_the_order_of_the_numbers(self):
        store = desired_state.Store(self.conf)
        attempts = []
        for change in ([['a.x', '1']], NEW, [['b.x', '2']]):
            attempts.append(store.begin(self.server_id, change).number)
            store.fail(self.server_id, attempts[-1])
        last = store.begin(self.server_id, [['c.x', '3']]).number
        store.accept(self.server_id, last, attempts)
        self.assertEqual(
            states.State(4, [['b.x', '2'], ['c.x', '3']], NEW, last),
            store.read(self.server_id))

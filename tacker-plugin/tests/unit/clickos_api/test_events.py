# SPDX-License-Identifier: Apache-2.0
"""A tenant reads why its guest did not start, and nothing else of Nova."""

import types
import uuid

from clickos_api.operations import events
from tests.unit.clickos_api import base


class EventsTest(base.TestCase):

    def setUp(self):
        super().setUp()
        self.path = f'/v1/servers/{self.server_id}/events'
        self.cloud.actions[self.server_id] = {
            'req-2': [{'event': 'clickos_start', 'result': 'Error',
                       'finish_time': '2026-01-01T00:00:00Z',
                       'details': 'fw.click:3:1: no such class'},
                      {'event': 'compute_reboot_instance',
                       'result': 'Error', 'details': 'host42: secret'}],
            'req-1': [{'event': 'clickos_start', 'result': 'Success',
                       'finish_time': None, 'details': None}]}

    def test_starts_come_with_their_reasons_and_alone(self):
        self.assertEqual((200, {'events': [
            {'request_id': 'req-2', 'action': 'reboot', 'result': 'Error',
             'finished_at': '2026-01-01T00:00:00Z',
             'details': 'fw.click:3:1: no such class'},
            {'request_id': 'req-1', 'action': 'reboot', 'result': 'Success',
             'finished_at': None, 'details': ''}]}),
            self.call('GET', self.path))

    def test_another_project_gets_none(self):
        other = self.caller(uuid.uuid4().hex, 'member', 'reader')
        self.assertEqual(404, self.call('GET', self.path, other)[0])

    def test_they_leave_threads_to_others(self):
        """Nova may answer slowly, and a request asks it nine times."""
        places = self.app.extensions['clickos']._service.bulkhead
        places._limit = 1
        other = types.SimpleNamespace(id='guest', project_id=self.project_id)
        with places.read(other):
            self.assertError(503, 'busy', 'events of project',
                             self.call('GET', self.path))
        self.assertEqual(200, self.call('GET', self.path)[0])

    def test_the_newest_actions_only(self):
        self.cloud.actions[self.server_id] = {
            f'req-{n}': [{'event': 'clickos_start', 'result': 'Success'}]
            for n in range(20)}
        self.cloud.asked.clear()
        found = self.call('GET', self.path)[1]['events']
        self.assertEqual(events.MAX_ACTIONS, len(found))
        self.assertEqual('req-0', found[0]['request_id'])
        self.assertLessEqual(len(self.cloud.asked),
                             events.MAX_ACTIONS + 2)

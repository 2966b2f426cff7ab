# SPDX-License-Identifier: Apache-2.0
"""Limits that guests share: the service, its database and agents."""

from concurrent import futures
import time
from unittest import mock
import uuid

from clickos_client import document
import sqlalchemy as sa

from clickos_api.db import models
from clickos_api.operations import shared_limits
from tests.unit.clickos_api import base

TOTAL = 1250000
RATE = {'name': 'rate', 'kind': 'rate', 'handler': 's.share', 'total': TOTAL}
QUOTA = {'name': 'quota', 'kind': 'quota', 'handler': 'q.share',
         'total': 64 * 2 ** 20}
USER_DATA = 'OS-EXT-SRV-ATTR:user_data'


class SharedLimitsTest(base.TestCase):
    """Two guests of a project, each with a state that it started with."""

    def setUp(self):
        super().setUp()
        self.id = str(uuid.uuid4())
        self.service = self.app.extensions['clickos']._service
        self.limits = self.service.limits
        # SQLite has one writer at a time.
        self.limits._guests = futures.ThreadPoolExecutor(1)
        self.addCleanup(self.limits._guests.shutdown)
        self.servers = [self.guest() for _ in range(2)]

    def guest(self):
        """Make a guest; return its server."""
        server_id, state_id = str(uuid.uuid4()), self.make_state()
        self.cloud.add_server(server_id, self.project_id)
        self.cloud.servers[server_id][USER_DATA] = document.referring(
            state_id)
        self.start(server_id)
        return server_id

    def start(self, server_id, incarnation=base.FakeAgent.incarnation):
        """Let a guest begin again, as nova-compute notes it."""
        self.agent.guests[server_id] = {'s.share': '0 0', 'q.share': '0 0'}
        server = self.service.cloud.server(server_id)
        seen = self.service.store.read(server.state_key)
        self.assertTrue(self.service.store.start(
            server.state_key, seen, incarnation, server_id))

    def set(self, servers=None, limits=(RATE, QUOTA), token=None):
        """Set limits; return status and body."""
        return self.call('PUT', f'/v1/limits/{self.id}', token, json={
            'limits': list(limits),
            'servers': self.servers if servers is None else servers})

    def shown(self, name='rate'):
        """Return what the service shows of a limit."""
        status, body = self.call('GET', f'/v1/limits/{self.id}')
        self.assertEqual(200, status)
        return next(each for each in body['limits'] if each['name'] == name)

    def share(self, server_id, name='s'):
        """Return the share that a guest has."""
        return int(self.agent.guests[server_id][f'{name}.share'].split()[0])

    def has_used(self, server_id, name, used):
        """Let a guest have used something."""
        share = self.share(server_id, name)
        self.agent.guests[server_id][f'{name}.share'] = f'{share} {used}'

    def round(self):
        """Do a round, as the service does each second."""
        key = self.project_id, self.id
        with self.limits._lock:
            self.limits._under_way.add(key)
        self.limits._work(key)

    def test_guests_have_shares_of_a_limit(self):
        status, body = self.set()
        self.assertEqual(200, status, body)
        self.assertEqual([TOTAL // 2] * 2,
                         list(map(self.share, self.servers)))
        rate, quota = body['limits']
        self.assertEqual((TOTAL, TOTAL), (rate['total'], rate['shared']))
        self.assertEqual([2 ** 20] * 2, [
            self.share(each, 'q') for each in self.servers])
        self.assertEqual((2 * 2 ** 20, 0), (quota['shared'], quota['used']))

    def test_a_third_guest_has_its_share_when_it_joins(self):
        self.set()
        self.servers.append(self.guest())
        self.set()
        self.assertGreater(self.share(self.servers[2]), TOTAL // 5)
        self.assertLessEqual(sum(map(self.share, self.servers)), TOTAL)

    def test_a_guest_that_leaves_gives_back_what_it_has(self):
        self.set()
        self.has_used(self.servers[1], 'q', 1000)
        self.set(self.servers[:1])
        self.assertEqual([TOTAL, 0], list(map(self.share, self.servers)))
        quota = self.shown('quota')
        self.assertEqual((1000, 1), (quota['used'], len(quota['guests'])))

    def test_a_silent_guest_keeps_its_share_until_its_server_is_gone(self):
        self.set()
        del self.agent.guests[self.servers[1]]
        self.set(self.servers[:1])
        self.assertEqual(TOTAL // 2, self.share(self.servers[0]))
        self.assertEqual([False, True], [
            each['is_silent'] for each in self.shown()['guests']])
        del self.cloud.servers[self.servers[1]]
        self.round()
        self.round()
        self.assertEqual(TOTAL, self.share(self.servers[0]))
        # What it may have used of its lease counts as used.
        self.assertEqual(2 ** 20, self.shown('quota')['used'])

    def test_a_guest_that_begins_again_gets_a_share_again(self):
        self.set()
        self.has_used(self.servers[0], 'q', 1000)
        self.round()
        with mock.patch.object(self.agent, 'incarnation', str(uuid.uuid4())):
            self.start(self.servers[0], self.agent.incarnation)
            # The others are of the incarnation before.
            self.round()
            self.assertGreater(self.share(self.servers[0]), TOTAL // 4)
            self.assertGreater(self.share(self.servers[0], 'q'), 2 ** 19)
        # All of the lease before counts as used.
        self.assertEqual(2 ** 20, self.shown('quota')['used'])

    def test_a_server_without_a_state_shows_its_incarnation_first(self):
        self.agent.guests[self.server_id].update(
            {'s.share': '0 0', 'q.share': '0 0'})
        self.set([self.server_id])
        self.assertEqual(TOTAL, self.share(self.server_id))

    def test_a_write_without_an_answer_is_in_doubt(self):
        self.set()
        self.has_used(self.servers[0], 's', TOTAL)
        written = self.agent.handler_write
        with mock.patch.object(self.agent, 'handler_write', side_effect=(
                lambda *args, **more: written(*args, **more) and {
                    'error': {'code': 'timeout', 'message': 'late'}})):
            self.round()
        self.assertLessEqual(self.shown()['shared'], TOTAL)
        self.round()
        self.round()
        self.assertLessEqual(sum(map(self.share, self.servers)), TOTAL)
        self.assertGreater(sum(map(self.share, self.servers)), TOTAL * 0.9)

    def test_an_overtaken_round_writes_nothing(self):
        self.set()
        key = self.project_id, self.id
        old = self.limits._begin(key)
        self.assertIsNone(self.limits._begin(key))
        with mock.patch.object(shared_limits, '_now_ms', return_value=(
                time.time_ns() // 10 ** 6 + 31000)):
            new = self.limits._begin(key)
        self.assertEqual(old.version + 1, new.version)
        self.assertRaises(shared_limits.Lost, self.limits._round, old)
        server = self.service.cloud.server(self.servers[0])
        self.assertRaises(shared_limits.Lost, self.limits._write, old,
                          server, [TOTAL, 0])
        self.assertEqual(TOTAL // 2, self.share(self.servers[0]))
        self.limits._end(old)
        self.assertIsNone(self.limits._begin(key))

    def test_shares_are_no_desired_state_and_not_among_the_changes(self):
        self.set()
        for server_id in self.servers:
            path = f'/v1/servers/{server_id}'
            self.assertEqual([], self.call(
                'GET', f'{path}/changes')[1]['changes'])
            self.assertEqual([], self.call(
                'GET', f'{path}/desired-state')[1]['writes'])

    def test_work_does_the_rounds_that_are_due(self):
        self.set()
        self.has_used(self.servers[0], 's', 10 * TOTAL)
        with mock.patch.object(shared_limits, '_now_ms', return_value=(
                time.time_ns() // 10 ** 6 + 1001)):
            self.limits.work()
            deadline_s = time.monotonic() + 5
            while self.limits._under_way:
                self.assertLess(time.monotonic(), deadline_s)
                time.sleep(0.01)
        self.assertLess(self.share(self.servers[1]), TOTAL // 2)

    def test_old_limits_without_guests_are_deleted(self):
        self.set([])
        self.limits.prune(3600)
        self.assertEqual(200, self.call('GET', f'/v1/limits/{self.id}')[0])
        self.limits.prune(-1)
        self.assertError(404, 'no-such-limits', self.id,
                         self.call('GET', f'/v1/limits/{self.id}'))

    def test_what_is_no_limit(self):
        for limits, servers, words in (
                ([], [], 'limits: expected a list of 1 to 8 limits'),
                ([{**RATE, 'total': -1}], [], 'limits[0].total'),
                ([{**RATE, 'kind': 'x'}], [], 'rate or quota'),
                ([RATE, {**QUOTA, 'handler': 's.share'}], [],
                 'a handler comes twice'),
                ([RATE, {**QUOTA, 'name': 'rate'}], [], 'a name comes twice'),
                ([RATE], ['x'], 'servers[0]')):
            with self.subTest(words):
                self.assertError(400, 'bad-request', words,
                                 self.set(servers, limits))
        self.assertEqual(404, self.set([str(uuid.uuid4())])[0])

    def test_every_role(self):
        self.set()
        path = f'/v1/limits/{self.id}'
        reader = self.caller(self.project_id, 'reader')
        self.assertEqual(403, self.set(token=reader)[0])
        self.assertEqual(200, self.call('GET', path, reader)[0])
        other = self.caller(uuid.uuid4().hex, 'member', 'reader')
        self.assertEqual(404, self.set(token=other)[0])
        for method in ('GET', 'DELETE'):
            self.assertEqual(404, self.call(method, path, other)[0])
        self.assertEqual(204, self.call('DELETE', path)[0])
        self.assertEqual(404, self.call('DELETE', path)[0])
        with self.service.store.reader() as session:
            self.assertEqual(0, session.scalar(sa.select(
                sa.func.count()).select_from(models.SharedLimits)))

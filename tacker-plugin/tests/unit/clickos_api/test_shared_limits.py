# SPDX-License-Identifier: Apache-2.0
"""Limits that guests share: the service, its database and agents."""

from concurrent import futures
import threading
import time
from unittest import mock
import uuid

from clickos_client import document
import sqlalchemy as sa

from clickos_api.db import models
from clickos_api import errors
from clickos_api.operations import shared_limits
from clickos_api.operations import workers
from clickos_api.state import fusions
from clickos_api.state import sharing
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
        self.group = str(uuid.uuid4())
        self.service = self.app.extensions['clickos']._service
        self.limits = self.service.limits
        # SQLite has one writer at a time.
        self.limits._guests = workers.Workers(1, 1)
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
        return self.call('PUT', f'/v1/limits/{self.group}', token, json={
            'limits': list(limits),
            'servers': self.servers if servers is None else servers})

    def shown(self, name='rate'):
        """Return what the service shows of a limit."""
        status, body = self.call('GET', f'/v1/limits/{self.group}')
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
        key = self.project_id, self.group
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
        key = self.project_id, self.group
        old = self.limits._begin(key)
        self.assertIsNone(self.limits._begin(key))
        with mock.patch.object(shared_limits, '_now_ms', return_value=(
                time.time_ns() // 10 ** 6 + 31000)):
            new = self.limits._begin(key)
        self.assertEqual(old.version + 1, new.version)
        self.assertRaises(shared_limits.Lost, self.limits._round, old)
        server = self.service.cloud.server(self.servers[0])
        self.assertRaises(shared_limits.Lost, self.limits._write, old,
                          server, [['s.share', str(TOTAL)]])
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
        self.assertEqual(200, self.call('GET', f'/v1/limits/{self.group}')[0])
        self.set()
        self.limits.prune(-1)
        self.assertEqual(200, self.call('GET', f'/v1/limits/{self.group}')[0])
        self.set([])
        self.limits.prune(-1)
        self.assertError(404, 'no-such-limits', self.group,
                         self.call('GET', f'/v1/limits/{self.group}'))

    def test_limits_that_are_set_again_are_not_exceeded(self):
        """A guest that is silent has its share yet."""
        self.set()
        del self.agent.guests[self.servers[1]]
        path = f'/v1/limits/{self.group}'
        self.assertEqual(204, self.call('DELETE', path)[0])
        for method in ('GET', 'DELETE'):
            self.assertError(404, 'no-such-limits', self.group,
                             self.call(method, path))
        for name in ('rate', 'speed'):
            self.assertEqual(200, self.set(limits=[{**RATE, 'name': name}])[0])
            self.assertEqual(TOTAL // 2, self.share(self.servers[0]))
            self.assertEqual(TOTAL, self.shown(name)['shared'])

    def own(self, server_id, name='own'):
        """Return the share that a guest has at another handler."""
        return self.share(server_id, name)

    def move(self, *handlers):
        """Put the limit at one handler after another."""
        for handler in handlers:
            self.assertEqual(200, self.set(
                limits=[{**RATE, 'handler': handler}])[0])

    def test_a_handler_without_a_limit_has_its_own_share_again(self):
        for server_id in self.servers:
            self.agent.guests[server_id]['own.share'] = '5000 0'
        self.move('own.share')
        self.assertEqual([TOTAL // 2] * 2, list(map(self.own, self.servers)))
        self.move('s.share', 'q.share')
        self.assertEqual([5000] * 2, list(map(self.own, self.servers)))
        self.assertEqual([0] * 2, list(map(self.share, self.servers)))

    def test_a_handler_is_given_back_after_a_failure_and_a_restart(self):
        for server_id in self.servers:
            self.agent.guests[server_id]['own.share'] = '5000 0'
        self.move('own.share')
        written = self.agent.handler_write

        def fails(ctxt, server_id, writes, *args, **more):
            if writes[0][0] == 'own.share':
                return {'error': {'code': 'timeout', 'message': 'late'}}
            return written(ctxt, server_id, writes, *args, **more)
        with mock.patch.object(self.agent, 'handler_write',
                               side_effect=fails):
            self.move('s.share', 'q.share')
        self.assertEqual([TOTAL // 2] * 2, list(map(self.own, self.servers)))
        # Other limits do not get the handler meanwhile.
        first, self.group = self.group, str(uuid.uuid4())
        self.assertError(409, 'shares', 'own.share', self.set(
            limits=[{**RATE, 'handler': 'own.share'}]))
        self.group = first
        self.limits = shared_limits.SharedLimits(self.service)
        self.limits._guests = workers.Workers(1, 1)
        self.round()
        self.assertEqual([5000] * 2, list(map(self.own, self.servers)))

    def test_a_limit_waits_until_a_handler_is_given_back(self):
        """The own share of a guest may be larger than any quota."""
        quota = {**QUOTA, 'handler': 'own.share'}
        for server_id in self.servers:
            self.agent.guests[server_id]['own.share'] = f'{2 ** 40} 0'
        self.set(limits=[quota])
        written = self.agent.handler_write

        def silent(ctxt, server_id, writes, *args, **more):
            answer = written(ctxt, server_id, writes, *args, **more)
            if [server_id, writes[0][0]] == [self.servers[0], 'own.share']:
                return {'error': {'code': 'timeout', 'message': 'late'}}
            return answer
        with mock.patch.object(self.agent, 'handler_write',
                               side_effect=silent):
            self.set(limits=[QUOTA])
        self.assertEqual(2 ** 40, self.own(self.servers[0]))
        for _ in range(2):
            self.assertError(409, 'shares', 'own.share',
                             self.set(limits=[quota]))
        self.assertEqual(2 ** 20, self.share(self.servers[0], 'q'))
        self.round()
        self.assertEqual(200, self.set(limits=[quota])[0])
        self.assertEqual([2 ** 20] * 2, list(map(self.own, self.servers)))
        with mock.patch.object(self.agent, 'incarnation', str(uuid.uuid4())):
            self.start(self.servers[0], self.agent.incarnation)
            self.agent.guests[self.servers[0]]['own.share'] = f'{2 ** 40} 0'
            self.round()
            self.assertGreater(self.own(self.servers[0]), 2 ** 19)

    def test_a_handler_that_is_gone_is_not_given_back(self):
        self.move('q.share')
        missing = {'error': {'code': 'no-such-element', 'message': 'q'}}
        written = self.agent.handler_write
        with mock.patch.object(
                self.agent, 'handler_write', side_effect=(
                    lambda ctxt, server_id, writes, *args, **more: missing
                    if writes[0][0] == 'q.share' else written(
                        ctxt, server_id, writes, *args, **more))):
            self.move('s.share')
        key = self.project_id, self.group
        ledger = self.limits._of_project(key[0])[key[1]]
        self.assertEqual(set(), ledger.former_without(['s.share']))

    def refusing(self, code):
        """Return a patch: guests refuse what they had at own.share."""
        written = self.agent.handler_write
        refusal = {'error': {'code': code, 'message': 'no'}}
        return mock.patch.object(self.agent, 'handler_write', side_effect=(
            lambda ctxt, server_id, writes, *args, **more: refusal
            if ['own.share', '5000'] in writes else written(
                ctxt, server_id, writes, *args, **more)))

    def former(self):
        """Return the handlers that wait to be given back."""
        return self.limits._of_project(self.project_id)[
            self.group].former_without(['s.share', 'q.share'])

    def test_a_refusal_of_a_handler_is_final(self):
        for server_id in self.servers:
            self.agent.guests[server_id]['own.share'] = '5000 0'
        self.move('own.share')
        for code, left in (('busy', {'own.share'}), ('handler-error', set())):
            with self.refusing(code):
                self.move('s.share')
            self.assertEqual(left, self.former())
        for server_id in self.servers:
            self.assertEqual([], self.call(
                'GET', f'/v1/servers/{server_id}/changes')[1]['changes'])
        self.move('own.share')

    def test_a_guest_has_one_write_of_its_own_shares_at_a_time(self):
        self.limits._guests = workers.Workers(8, 8)
        guests = {each: mock.Mock(id=each) for each in 'st'}
        turn, written = mock.Mock(key=('p', 'g')), []
        one = threading.Lock()

        def write(_turn, server, writes):
            if server.id == 't':
                raise errors.Unavailable('t', code='busy')
            self.assertTrue(one.acquire(blocking=False))
            time.sleep(0.02)
            one.release()
            handler = writes[0][0]
            written.extend(writes)
            if handler == 'b':
                raise errors.ApiError('no', code='handler-error')
            return handler != 'c'       # which has no verdict
        with mock.patch.object(self.limits, '_write', write):
            self.limits._restore(turn, guests, {
                each: {'a': 1, 'b': 2, 'c': 3, 'd': 4} for each in guests})
        self.assertEqual([['a', '1'], ['b', '2'], ['c', '3']], written)
        self.assertEqual([mock.call('s', 'a'), mock.call('s', 'b')],
                         turn.ledger.restored.call_args_list)

    def test_handlers_that_are_not_given_back_are_counted(self):
        self.move('s.share')
        self.agent.guests.clear()
        with mock.patch.object(sharing, 'MAX_FORMER', 1):
            self.move('q.share')
            self.assertError(413, 'too-large', 'the limit is 1', self.set(
                limits=[{**RATE, 'handler': 'x.share'}]))

    def test_shares_of_deleted_limits_are_in_no_others(self):
        self.set()
        path, first = f'/v1/limits/{self.group}', self.group
        self.call('DELETE', path)
        self.assertEqual([TOTAL // 2] * 2,
                         list(map(self.share, self.servers)))
        self.group = str(uuid.uuid4())
        self.assertError(409, 'shares', f'deleted limits {first}', self.set())
        # One starts again, and the other is deleted.
        with mock.patch.object(self.agent, 'incarnation', str(uuid.uuid4())):
            self.start(self.servers[0], self.agent.incarnation)
            del self.cloud.servers[self.servers.pop()]
            self.group = first
            self.round()
            self.assertNotIn(first,
                             self.limits._of_project(self.project_id))
            self.group = str(uuid.uuid4())
            self.assertEqual(200, self.set()[0])
            self.assertEqual(TOTAL, self.share(self.servers[0]))

    def test_deleted_limits_of_guests_are_counted(self):
        with mock.patch.object(shared_limits, '_MAX_GROUPS', 1):
            for handler in ('s.share', 'q.share'):
                self.group = str(uuid.uuid4())
                limits = [{**RATE, 'handler': handler}]
                self.assertEqual(200, self.set(limits=limits)[0])
                self.call('DELETE', f'/v1/limits/{self.group}')
            self.group = str(uuid.uuid4())
            self.assertError(413, 'over-quota', 'the limit is 2',
                             self.set([]))

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

    def test_a_whole_number_with_a_point_is_one(self):
        status, body = self.call('PUT', f'/v1/limits/{self.group}', data=(
            '{"limits": [{"name": "rate", "kind": "rate", "handler":'
            ' "s.share", "total": 1.25e6}], "servers": ["%s"]}'
            % self.servers[0]).encode())
        self.assertEqual(200, status, body)
        self.assertEqual('1250000', str(body['limits'][0]['total']))
        self.assertEqual(TOTAL, self.share(self.servers[0]))

    def test_a_fused_guest_or_a_hop_gets_no_shares(self):
        server = self.service.cloud.server(self.servers[0])
        fused = str(uuid.uuid4())
        self.cloud.add_server(fused, self.project_id)
        self.service.fusing.fusions.add(fusions.Fusion(
            str(uuid.uuid4()), fused, self.project_id,
            (fusions.Hop(server.state_key, 'hop', str(uuid.uuid4())),)))
        for server_id in (self.servers[0], fused):
            self.assertError(409, 'fused', server_id, self.set([server_id]))
        self.assertEqual(404, self.call('GET', f'/v1/limits/{self.group}')[0])

    def test_a_fusion_at_the_same_time(self):
        self.set(self.servers[1:])
        before = self.shown()
        refused = errors.ApiError('is a hop', code='fused', status=409)
        with mock.patch.object(
                self.service.fusing, 'require_no_part',
                side_effect=[None, None, refused]):
            self.assertError(409, 'fused', 'is a hop', self.set())
        self.assertEqual(before, self.shown())
        self.assertEqual(0, self.share(self.servers[0]))
        self.assertEqual(200, self.set()[0])

    def test_servers_of_other_projects_share_nothing(self):
        server_id = str(uuid.uuid4())
        self.cloud.add_server(server_id, uuid.uuid4().hex)
        # The operator may have changed the rules of the policy.
        self.assertRaises(
            errors.NotFound, self.limits.declare,
            (self.project_id, self.group), [RATE],
            [self.service.cloud.server(server_id)])
        self.assertEqual(404, self.call('GET', f'/v1/limits/{self.group}')[0])

    def test_two_groups_that_are_declared_at_once(self):
        """The other one is stored after the first check of this one."""
        make, other = self.limits._make, str(uuid.uuid4())

        def declare_other(key):
            self.limits._make = make
            self.limits.declare(
                (self.project_id, other), [RATE],
                list(map(self.service.cloud.server, self.servers)))
            make(key)
        self.limits._make = declare_other
        self.assertError(409, 'shares', f'limits {other} divide s.share, too',
                         self.set())
        self.assertEqual([TOTAL // 2] * 2,
                         list(map(self.share, self.servers)))
        with self.limits._store.reader() as session:
            empty = session.get(models.SharedLimits,
                                (self.project_id, self.group))
            self.assertNotIn('s.share', empty.ledger)

    def test_two_groups_do_not_divide_one_handler_of_a_guest(self):
        self.set()
        self.group = str(uuid.uuid4())
        self.assertError(409, 'shares', self.servers[1],
                         self.set(self.servers[1:], [QUOTA]))
        self.assertEqual(200, self.set(
            self.servers, [{**RATE, 'handler': 'other.share'}])[0])

    def test_a_project_has_so_many_groups(self):
        with mock.patch.object(shared_limits, '_MAX_GROUPS', 2):
            for _ in range(2):
                self.group = str(uuid.uuid4())
                self.assertEqual(200, self.set([])[0])
            self.assertEqual(200, self.set([])[0])
            self.group = str(uuid.uuid4())
            self.assertError(413, 'over-quota', 'the limit is 2',
                             self.set([]))

    def test_guests_that_do_not_leave_are_counted(self):
        self.set()
        self.agent.guests.clear()
        with mock.patch.object(shared_limits, '_MAX_WITH_LEAVING', 2):
            self.assertError(413, 'too-large', 'the limit is 2',
                             self.set([self.guest()]))

    def test_a_round_of_deleted_limits_is_none_of_new_ones(self):
        self.set()
        key = self.project_id, self.group
        old = self.limits._begin(key)
        self.call('DELETE', f'/v1/limits/{self.group}')
        self.limits._make(key)
        for _ in range(6):
            new = self.limits._begin(key)
            self.assertRaises(shared_limits.Lost, self.limits._keep, old)
            self.assertRaises(shared_limits.Lost, self.limits._require, old)
            self.limits._end(new)

    def test_guests_that_hang_leave_threads_to_others(self):
        released = threading.Event()
        self.addCleanup(released.set)
        self.limits._guests = workers.Workers(4, 2)
        hung = {each: mock.Mock(id=each, project_id='p', state_key=each)
                for each in '01234567'}
        ledger = sharing.Ledger()
        ledger.declare([RATE], list(hung))
        self.patch_read(lambda server, _reads: (
            released.wait(30) and None if server.project_id == 'p'
            else [(0, 0)]))
        with mock.patch.object(shared_limits, '_ANSWER_S', 0.1), \
                mock.patch.object(shared_limits, '_GUESTS_OF_PROJECT', 2):
            for _ in range(3):
                self.limits._look('p', ledger, hung)
            self.assertEqual(2, self.limits._guests.busy)
            server = self.service.cloud.server(self.servers[0])
            other = sharing.Ledger()
            other.declare([RATE], [server.id])
            found = self.limits._look(self.project_id, other,
                                      {server.id: server})
        self.assertEqual([(0, 0)], found[server.id][1])

    def test_hung_guests_leave_threads_to_others_of_their_project(self):
        self.limits._guests = workers.Workers(4, 2)
        job = futures.Future()
        job.set_result(None)
        for count in range(4):
            self.limits._late[str(count)] = shared_limits._Late(
                'p', job, time.monotonic() + 60)
        with mock.patch.object(shared_limits, '_GUESTS_OF_PROJECT', 4):
            found = self.limits._askable(
                'p', {str(count): None for count in range(6)})
            self.assertEqual((['4', '5'], 4), (found[:2], len(found)))
            for count in range(2):
                self.limits._late[str(count)] = shared_limits._Late(
                    'p', futures.Future(), 0)
            self.assertEqual(['4', '5'], self.limits._askable(
                'p', {str(count): None for count in range(6)}))

    def patch_read(self, read):
        """Let guests answer so."""
        patch = mock.patch.object(self.limits, '_read', read)
        patch.start()
        self.addCleanup(patch.stop)

    def test_a_project_has_few_ledgers_under_way_and_all_come(self):
        keys = [(project, str(number)) for project in ('a', 'b')
                for number in range(5)]
        with self.service.store.writer() as session:
            for key in keys:
                session.add(models.SharedLimits(
                    project_id=key[0], id=key[1], version=0, busy_until_ms=0,
                    looked_ms=0, used_ms=0, ledger='{}'))
        self.limits._ledgers = futures.ThreadPoolExecutor(8)
        most, done = [], []

        def begin(key):
            most.append(sum(each[0] == key[0]
                            for each in self.limits._under_way))
            time.sleep(0.02)
            done.append(key)
        with mock.patch.object(self.limits, '_begin', begin):
            self.limits.work()
            deadline_s = time.monotonic() + 5
            while len(done) < len(keys):
                self.assertLess(time.monotonic(), deadline_s)
                time.sleep(0.01)
            self.limits._ledgers.shutdown()
        self.assertEqual(keys, sorted(done))
        self.assertEqual(shared_limits._LEDGERS_OF_PROJECT, max(most))

    def test_projects_together_leave_threads_to_others(self):
        released = threading.Event()
        self.addCleanup(released.set)
        pool = workers.Workers(shared_limits._GUESTS,
                               shared_limits._GUESTS_OF_PROJECT)
        for project_id in 'abcd':
            with self.assertRaisesRegex(errors.Unavailable, 'under way'):
                for _ in range(shared_limits._GUESTS):
                    pool.submit(project_id, released.wait, 30)
        self.assertTrue(pool.submit('other', lambda: True).result(5))

    def test_hung_guests_of_all_projects_have_few_threads(self):
        answered = futures.Future()
        answered.set_result(None)
        for count in range(40):
            self.limits._late[str(count)] = shared_limits._Late(
                f'p{count}', futures.Future() if count < 6 else answered,
                time.monotonic() + 60)
        hung = {str(count): None for count in range(20, 40)}
        with mock.patch.object(shared_limits, '_HUNG', 8):
            self.assertEqual(2, len(self.limits._askable('p', hung)))

    def test_slow_projects_leave_threads_for_ledgers_to_others(self):
        slow = [(project, str(number)) for project in 'abcd'
                for number in range(2)]
        released, done = threading.Event(), []
        self.addCleanup(released.set)

        def begin(key):
            if key in slow and not released.wait(
                    30 if key[0] in self.limits._slow_until_s else 0.2):
                done.append(key)

        def work(*keys):
            with self.service.store.writer() as session:
                session.execute(sa.delete(models.SharedLimits))
                for key in keys:
                    session.add(models.SharedLimits(
                        project_id=key[0], id=key[1], version=0,
                        busy_until_ms=0, looked_ms=0, used_ms=0, ledger='{}'))
            self.limits.work()

        def wait(what):
            deadline_s = time.monotonic() + 5
            while not what():
                self.assertLess(time.monotonic(), deadline_s)
                time.sleep(0.01)
        with mock.patch.object(self.limits, '_begin', begin), \
                mock.patch.object(shared_limits, '_SLOW_S', 0.1):
            work(*slow)
            wait(lambda: len(done) == len(slow))
            wait(lambda: not self.limits._under_way)
            work(*slow)
            work(('other', '0'))
            wait(lambda: all(key[0] != 'other'
                             for key in self.limits._under_way))
            self.assertEqual(
                4, len(self.limits._under_way), 'a slow project has one')
            released.set()
            wait(lambda: not self.limits._under_way)

    def test_a_guest_that_refuses_shares_fills_no_log(self):
        self.set()
        self.has_used(self.servers[0], 's', TOTAL)
        refusal = {'error': {'code': 'handler-error', 'message': 'no'}}
        with mock.patch.object(self.agent, 'handler_write',
                               return_value=refusal), \
                self.assertLogs(shared_limits.LOG.logger, 'INFO') as logged:
            for _ in range(4):
                self.round()
        self.assertLessEqual(len(logged.output), len(self.servers))

    def test_every_role(self):
        self.set()
        path = f'/v1/limits/{self.group}'
        reader = self.caller(self.project_id, 'reader')
        self.assertEqual(403, self.set(token=reader)[0])
        self.assertEqual(200, self.call('GET', path, reader)[0])
        other = self.caller(uuid.uuid4().hex, 'member', 'reader')
        self.assertEqual(404, self.set(token=other)[0])
        for method in ('GET', 'DELETE'):
            self.assertEqual(404, self.call(method, path, other)[0])
        self.assertEqual(204, self.call('DELETE', path)[0])
        self.assertEqual(404, self.call('DELETE', path)[0])
        self.cloud.servers.clear()
        self.round()
        with self.service.store.reader() as session:
            self.assertEqual(0, session.scalar(sa.select(
                sa.func.count()).select_from(models.SharedLimits)))

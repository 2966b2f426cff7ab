# SPDX-License-Identifier: Apache-2.0
"""Eight guests that hang do not stall the API for others: real uWSGI."""

import collections
from concurrent import futures
import contextlib
import os
import pathlib
import socket
import subprocess
import sys
import threading
import time
import unittest
import uuid

import requests

from clickos_api import errors
from clickos_api.operations import workers
from clickos_api.outside import ownership
from tests.unit.clickos_api import base
from tests.unit.clickos_api import slow_wsgi

#: As devstack/lab/clickos_lab/config sets uWSGI up for clickos-api.
_UWSGI = ('--processes', '1', '--threads', '40', '--enable-threads',
          '--die-on-term', '--lazy-apps', '--need-app',
          '--single-interpreter', '--buffer-size', '65535', '--listen', '64',
          '--socket-timeout', '60', '--reuse-port',
          '--add-header', 'Connection: close')
_SLOW_GUESTS = 8
#: In all more than threads, so without bulkhead all threads would wait.
_CLIENTS_OF_A_GUEST = 5
_ROUNDS = 5
#: No measure of speed: the guests that hang answer after it only, if at all.
_HANG_S = 240


class SlowGuestsTest(base.TestCase):
    """Clients of slow guests next to a client of a good one."""

    limit_s = 300

    def setUp(self):
        super().setUp()
        self.cloud.add_server(self.server_id, slow_wsgi.PROJECT)
        self.slow = [slow_wsgi.SLOW + str(uuid.uuid4())[2:]
                     for _ in range(_SLOW_GUESTS)]
        for server_id in self.slow:
            self.cloud.add_server(server_id, slow_wsgi.PROJECT)
        # This socket keeps the port for uWSGI.
        kept = socket.socket()
        self.addCleanup(kept.close)
        kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        kept.bind(('127.0.0.1', 0))
        self.port = kept.getsockname()[1]
        settings = pathlib.Path(self.conf.config_file[0])
        self.gate = settings.with_suffix('.gate')
        settings.write_text(settings.read_text().replace(
            'guest_timeout = 1', f'guest_timeout = {_HANG_S}'))
        self._start(settings)

    def _start(self, settings):
        root = pathlib.Path(__file__).parents[4]
        program = pathlib.Path(sys.executable).parent / 'uwsgi'
        path = [root / 'tacker-plugin', root / 'interfaces', *sys.path]
        process = subprocess.Popen(
            [program, '--http-socket', f'127.0.0.1:{self.port}', *_UWSGI,
             '--disable-logging', '--home', sys.prefix, '--module',
             'tests.unit.clickos_api.slow_wsgi:application'],
            cwd=root / 'tacker-plugin', stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, env={
                **os.environ, 'PYTHONPATH': ':'.join(map(str, path)),
                slow_wsgi.CONF_VARIABLE: str(settings),
                slow_wsgi.GATE_VARIABLE: str(self.gate)})
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self._await(process)

    def _await(self, process):
        end_s = time.monotonic() + 120
        while time.monotonic() < end_s:
            self.assertIsNone(process.poll(), 'uWSGI ended')
            try:
                requests.get(f'http://127.0.0.1:{self.port}/', timeout=5)
                return
            except requests.RequestException:
                time.sleep(0.1)
        self.fail('uWSGI does not answer')

    def send(self, method, server_id, **more):
        """Send a request about a handler; return the status."""
        return requests.request(
            method, f'http://127.0.0.1:{self.port}/v1/servers/{server_id}'
            '/handlers/fw.config', timeout=_HANG_S,
            headers={'X-Auth-Token': slow_wsgi.TOKEN}, **more).status_code

    def _bother(self, server_id, seen):
        """Read until the gate is open, as a client that tries again."""
        while not self.gate.exists():
            seen.add(self.send('GET', server_id))
            time.sleep(0.5)

    def _write_to_all(self):
        """Write to the slow guests, one after the other: SQLite locks."""
        for server_id in self.slow:
            self.assertEqual(202, self.send('PUT', server_id,
                                            json={'value': 'x'}))

    def _good(self, method, **more):
        """Send until the good guest answers.

        On a busy machine it may count as slow: then it gets 503 for a
        minute, too, and a change that takes long gets 202.
        """
        end_s, status = time.monotonic() + _HANG_S, None
        while status != 200 and time.monotonic() < end_s:
            status = self.send(method, self.server_id, **more)
            self.assertIn(status, (200, 202, 503))
        self.assertEqual(200, status, 'the good guest got no turn')

    def test_eight_slow_guests_stall_nobody_else(self):
        self._write_to_all()
        seen = set()
        clients = [threading.Thread(target=self._bother,
                                    args=(server_id, seen))
                   for server_id in self.slow * _CLIENTS_OF_A_GUEST]
        for client in clients:
            client.start()
        try:
            for _ in range(_ROUNDS):
                self._good('GET')
                self._good('PUT', json={'value': 'x'})
            self.assertNotIn(200, seen, 'a slow guest answered')
        finally:
            self.gate.touch()
            for client in clients:
                client.join()
        self.assertIn(503, seen, 'no place for a read of a slow guest')
        self.assertLessEqual(seen, {200, 503})


class BulkheadTest(unittest.TestCase):
    """Seats of threads that wait, and their turns."""

    @staticmethod
    def server(name, project_id='p'):
        """Return a server by a short name."""
        return ownership.Server(name, project_id, 'host1', 'ACTIVE', None,
                                None, name)

    def key(self, *names):
        """Return the key of a server."""
        return workers.key_of(self.server(*names))

    def taken(self, bulkhead, *servers, is_read=True):
        """Take a seat for each server; tell 'asked', 'queued' or None."""
        seats = [bulkhead._take(each, is_read) for each in servers]
        return seats, [each and ('queued' if each.is_queued else 'asked')
                       for each in seats]

    def test_reads_of_a_guest_take_turns_in_order(self):
        bulkhead = workers.Bulkhead(8, 60)
        (first, _, third, fourth), kinds = self.taken(
            bulkhead, *[self.server('a')] * 4)
        self.assertEqual(['asked', 'asked', 'queued', 'queued'], kinds)
        self.assertEqual(['asked'], self.taken(bulkhead, self.server('b'))[1])
        bulkhead._leave(first)
        # It answered in time, so more are under way.
        self.assertFalse(third.is_queued)
        self.assertFalse(fourth.is_queued)

    def test_a_turn_comes_to_who_waits(self):
        bulkhead = workers.Bulkhead(8, 60)
        seats, _ = self.taken(bulkhead, *[self.server('a')] * 2)
        with futures.ThreadPoolExecutor(1) as pool:
            done = pool.submit(self._read, bulkhead, self.server('a'))
            while len(bulkhead._seats) < 3:
                time.sleep(0.01)
            self.assertFalse(done.done())
            bulkhead._leave(seats[0])
            self.assertEqual('read', done.result())

    @staticmethod
    def _read(bulkhead, server):
        with bulkhead.read(server):
            return 'read'

    def test_a_queue_has_an_end(self):
        bulkhead = workers.Bulkhead(8, 0)
        self.taken(bulkhead, *[self.server('a')] * 2)
        with self.assertRaisesRegex(errors.Unavailable, 'no turn in 0 s') \
                as caught:
            self._read(bulkhead, self.server('a'))
        self.assertEqual('busy', caught.exception.code)
        self.assertEqual(2, len(bulkhead._seats))

    def test_nobody_queues_for_a_slow_guest(self):
        bulkhead = workers.Bulkhead(8, 60)
        seats, _ = self.taken(bulkhead, *[self.server('a')] * 2)
        seats[0].asked_s -= 5   # 5 s later
        self.assertEqual([None], self.taken(bulkhead, self.server('a'))[1])
        with self.assertRaisesRegex(errors.Unavailable, 'busy|seats'):
            self._read(bulkhead, self.server('a'))
        for seat in reversed(seats):
            bulkhead._leave(seat)
        self.assertEqual(['asked', 'asked', None], self.taken(
            bulkhead, *[self.server('a')] * 3)[1])

    def test_a_queue_ends_when_its_guest_becomes_slow(self):
        bulkhead = workers.Bulkhead(8, 240)
        seats, _ = self.taken(bulkhead, *[self.server('a')] * 2)
        with futures.ThreadPoolExecutor(1) as pool:
            done = pool.submit(self._read, bulkhead, self.server('a'))
            while len(bulkhead._seats) < 3:
                time.sleep(0.01)
            seats[0].asked_s -= 5
            with self.assertRaisesRegex(errors.Unavailable, 'slowly'):
                done.result()

    def test_slow_guests_share_four_seats(self):
        bulkhead = workers.Bulkhead(8, 60)
        for number in range(6):
            bulkhead._note(self.key(str(number), 'pq'[number > 3]), 5)
        self.assertEqual(['asked'] * 3 + [None], self.taken(
            bulkhead, *(self.server(str(n)) for n in range(4)))[1])
        self.assertEqual(['asked', None], self.taken(
            bulkhead, *(self.server(str(n), 'q') for n in (4, 5)))[1])
        self.assertEqual(['asked'], self.taken(bulkhead, self.server('x'))[1])

    def test_guests_that_become_slow_leave_a_seat_to_others(self):
        bulkhead = workers.Bulkhead(16, 60)
        bulkhead._note(self.key('a'), 0)
        bulkhead._note(self.key('b', 'q'), 5)
        bulkhead._note(self.key('b', 'r'), 5)
        seats, _ = self.taken(bulkhead, *[self.server('a')] * 6)
        for seat in seats:
            seat.asked_s -= 5   # 5 s later
        self.assertEqual(['asked', None], self.taken(
            bulkhead, self.server('b', 'q'), self.server('b', 'r'))[1])

    def test_a_project_leaves_seats_to_others(self):
        bulkhead = workers.Bulkhead(8, 60)
        kinds = self.taken(bulkhead, *[self.server('a')] * 12)[1]
        self.assertEqual(['asked'] * 2 + ['queued'] * 6 + [None] * 4, kinds)
        others = [self.server(name, 'q') for name in 'bbcd']
        self.assertEqual(['asked'] * 4, self.taken(bulkhead, *others)[1])

    def test_a_few_projects_leave_seats_to_others(self):
        bulkhead = workers.Bulkhead(32, 60)
        held = [sum(kind is not None for kind in self.taken(bulkhead, *(
            self.server(f'{project}{n}', project) for n in range(40)))[1])
            for project in 'pqrs']
        self.assertEqual([32, 2, 1, 1], held)

    def test_the_longest_queue_gives_its_last_seat(self):
        bulkhead = workers.Bulkhead(4, 60)
        seats, _ = self.taken(bulkhead, *[self.server('a')] * 4)
        self.assertEqual(['asked'], self.taken(bulkhead, self.server('b'))[1])
        self.assertTrue(seats[3].over.is_set() and seats[3].is_queued)
        self.assertNotIn(seats[3], bulkhead._seats)
        with self.assertRaisesRegex(errors.Unavailable, 'longest'):
            bulkhead._await_turn(self.server('a'), seats[3])
        # One more than the other's is no longer queue.
        self.assertEqual([None], self.taken(bulkhead, self.server('c'))[1])

    def test_writers_leave_seats_to_readers(self):
        bulkhead = workers.Bulkhead(8, 60)
        kinds = self.taken(bulkhead, *[self.server('a')] * 4, is_read=False)[1]
        self.assertEqual(['asked'] * 3 + [None], kinds)
        kinds = self.taken(bulkhead, *[self.server('b', 'q')] * 2,
                           is_read=False)[1]
        self.assertEqual(['asked', None], kinds)
        self.assertEqual(['asked', 'asked', 'queued'], self.taken(
            bulkhead, *[self.server('a')] * 3)[1])

    def test_a_change_that_waits_for_others_makes_no_guest_slow(self):
        bulkhead = workers.Bulkhead(8, 60)
        with bulkhead.change(self.server('a')) as seat:
            self.assertIsNone(seat.asked_s)
        self.assertEqual({}, dict(bulkhead._slow_until_s))
        with bulkhead.change(self.server('a')) as seat:
            self.assertEqual('7', seat.timed(str)(7))
            seat.answered_s += 5   # 5 s later
        self.assertTrue(bulkhead._is_slow(self.key('a')))

    def test_the_database_makes_no_guest_slow(self):
        """Only the time between request and answer counts."""
        bulkhead = workers.Bulkhead(8, 60)
        with bulkhead.change(self.server('a')) as seat:
            seat.timed(str)(7)
            seat.asked_s -= 50
            seat.answered_s -= 50
            self.assertFalse(bulkhead._is_slow(self.key('a')))
        self.assertFalse(bulkhead._is_slow(self.key('a')))

    def test_what_is_remembered_is_bounded(self):
        for took_s in 0, 5:
            bulkhead = workers.Bulkhead(8, 60)
            for number in range(workers._GUESTS + 5):
                bulkhead._note(self.key(str(number)), took_s)
            self.assertEqual(workers._GUESTS, len(bulkhead._slow_until_s))

    def test_other_keys_make_no_slow_guest_be_forgotten(self):
        bulkhead = workers.Bulkhead(8, 60)
        bulkhead._note(self.key('a'), 5)
        for number in range(workers._GUESTS + 5):
            with bulkhead.read(workers.Place(str(number), 'p', 'limits')):
                pass
        self.assertTrue(bulkhead._is_slow(self.key('a')))

    def test_an_id_of_another_project_or_kind_is_another_queue(self):
        bulkhead = workers.Bulkhead(8, 60)
        limits = workers.Place('a', 'q', 'limits')
        seats, kinds = self.taken(bulkhead, *[limits] * 3)
        self.assertEqual(['asked', 'asked', 'queued'], kinds)
        seats[0].asked_s -= 5   # 5 s later
        bulkhead._leave(seats[0])
        self.assertEqual([None], self.taken(bulkhead, limits)[1])
        for server in (self.server('a'), self.server('a', 'q')):
            self.assertEqual(['asked', 'asked', 'queued'], self.taken(
                bulkhead, *[server] * 3)[1])


class WorkersTest(unittest.TestCase):
    """Threads that wait for guests."""

    def test_a_project_leaves_threads_to_others(self):
        pool, over = workers.Workers(8), threading.Event()
        self.addCleanup(over.set)
        jobs = [pool.submit('p', over.wait) for _ in range(7)]
        with self.assertRaisesRegex(errors.Unavailable, '7 .* of project p'):
            pool.submit('p', over.wait)
        jobs.append(pool.submit('q', over.wait))
        with self.assertRaisesRegex(errors.Unavailable, '8 requests to'):
            pool.submit('r', over.wait)
        over.set()
        for job in jobs:
            self.assertTrue(job.result())
        self.assertEqual((0, {}), (pool.busy, dict(pool._busy)))

    def test_a_few_projects_leave_threads_to_others(self):
        pool, over = workers.Workers(64), threading.Event()
        self.addCleanup(over.set)
        held = collections.Counter()
        for project in 'pqrst':
            with contextlib.suppress(errors.Unavailable):
                while pool.submit(project, over.wait):
                    held[project] += 1
        self.assertEqual([56, 4, 2, 1, 1], list(held.values()))

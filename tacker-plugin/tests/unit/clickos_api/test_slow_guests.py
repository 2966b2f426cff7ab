# SPDX-License-Identifier: Apache-2.0
"""Eight guests that hang do not stall the API for others: real uWSGI."""

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

from clickos_api import workers
from tests.unit.clickos_api import base
from tests.unit.clickos_api import slow_wsgi

#: As devstack/lab/clickos_lab/config sets uWSGI up for clickos-api.
_UWSGI = ('--processes', '1', '--threads', '32', '--enable-threads',
          '--die-on-term', '--lazy-apps', '--need-app',
          '--single-interpreter', '--buffer-size', '65535', '--listen', '64',
          '--socket-timeout', '60', '--reuse-port',
          '--add-header', 'Connection: close')
_SLOW_GUESTS = 8
#: In all more than threads, so without places all threads would wait.
_CLIENTS_OF_A_GUEST = 5
_ROUNDS = 5
#: No measure of speed: the guests that hang answer after it only, if at all.
_HANG_S = 240


class SlowGuestsTest(base.TestCase):
    """Clients of slow guests beside a client of a good one."""

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
            'rpc_timeout = 1', f'rpc_timeout = {_HANG_S}'))
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


class PlacesTest(unittest.TestCase):
    """Places of threads that wait."""

    def taken(self, places, *server_ids):
        """Enter, and tell who got a place."""
        return [places._enter(server_id, workers.READS) is not None
                for server_id in server_ids]

    def test_a_guest_has_two_places_for_reads(self):
        places = workers.Places(8)
        self.assertEqual([True, True, False, True],
                         self.taken(places, 'a', 'a', 'a', 'b'))

    def test_slow_guests_share_four_places(self):
        places = workers.Places(2)
        for number in range(6):
            kind = places._enter(str(number), workers.READS)
            if kind:
                places._leave(str(number), kind, 5)
        self.assertEqual([True] * 4 + [False] * 2,
                         self.taken(places, *map(str, range(6))))
        self.assertEqual([True, True, False],
                         self.taken(places, 'x', 'y', 'z'))

    def test_a_place_is_given_back(self):
        places = workers.Places(1)
        for _ in range(3):
            with places.place('a', workers.READS) as has_place:
                self.assertTrue(has_place)

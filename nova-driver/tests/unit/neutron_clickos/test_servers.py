# SPDX-License-Identifier: Apache-2.0
"""Questions about servers, to a Nova that answers over HTTP."""

import http.server
import json
import threading
import unittest
from urllib import parse

from keystoneauth1 import adapter
from keystoneauth1 import noauth
from keystoneauth1 import session

from neutron_clickos import servers

SERVER = '6f70656e-7374-4163-8b00-000000000001'
OTHER = '6f70656e-7374-4163-8b00-000000000002'
UNKNOWN = (404, {'itemNotFound': {'code': 404, 'message': 'not found'}})
NONE = (200, {'servers': []})


class Answers(http.server.BaseHTTPRequestHandler):
    """Answers a question about one server, and a list of all."""

    def do_GET(self):
        path = parse.urlsplit(self.path).path
        self.server.asked.append(self.path)
        self.server.wait()
        status, body = (self.server.listed if path == '/servers'
                        else self.server.shown)
        raw = json.dumps(body).encode() if body is not None else b'<html>'
        self.send_response(status)
        self.send_header('Content-Length', str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, *_):
        pass


class Nova(http.server.ThreadingHTTPServer):

    daemon_threads = True

    def __init__(self):
        super().__init__(('127.0.0.1', 0), Answers)
        self.shown, self.listed, self.asked = UNKNOWN, NONE, []
        self.wait = lambda: None

    def client(self):
        url = f'http://127.0.0.1:{self.server_port}'
        return adapter.Adapter(session.Session(
            auth=noauth.NoAuth(endpoint=url)), service_type='compute')


class GoneTest(unittest.TestCase):

    def setUp(self):
        self.nova = Nova()
        thread = threading.Thread(target=self.nova.serve_forever)
        thread.start()
        self.addCleanup(self.nova.server_close)
        self.addCleanup(thread.join)
        self.addCleanup(self.nova.shutdown)

    def ask(self, server_id=SERVER):
        gone = servers.Gone(self.nova.client)
        gone.look(server_id, 'project')
        return server_id in gone

    def test_an_unknown_server_is_gone(self):
        self.assertTrue(self.ask())
        self.assertEqual([
            f'/servers/{SERVER}',
            f'/servers?all_tenants=True&uuid={SERVER}'], self.nova.asked)

    def test_only_nova_says_that_a_server_is_gone(self):
        for shown in ((200, {'server': {}}), (401, {}), (403, {}), (500, {}),
                      (503, {}),
                      # of a server before Nova
                      (404, None), (404, {}), (404, []),
                      (404, {'error': {'code': 404}})):
            self.nova.shown = shown
            self.assertFalse(self.ask(), shown)

    def test_a_user_who_is_no_admin_sees_no_server_of_others(self):
        for listed in ((403, {'forbidden': {}}), (200, None), (200, []),
                       (200, {}), (200, {'servers': [{'id': SERVER}]}),
                       (500, {})):
            self.nova.listed = listed
            self.assertFalse(self.ask(), listed)

    def test_a_reason_is_logged_once(self):
        gone = servers.Gone(self.nova.client)
        with self.assertLogs('neutron_clickos.servers', 'WARNING') as logged:
            for self.nova.listed in (403, {}), NONE, (200, []), (403, {}):
                self.nova.shown = (403, {}) if self.nova.listed == NONE \
                    else UNKNOWN
                for number in range(3):
                    gone.look(f'{SERVER[:-1]}{number}', 'project')
        self.assertEqual(3, len(logged.output))
        self.assertIn('[nova]', logged.output[0])

    def test_a_server_that_exists_is_not_logged(self):
        self.nova.shown = (200, {'server': {}})
        with self.assertNoLogs('neutron_clickos.servers', 'WARNING'):
            self.assertFalse(self.ask())

    def test_a_nova_that_is_away_says_nothing(self):
        gone = servers.Gone(lambda: adapter.Adapter(
            session.Session(auth=noauth.NoAuth(
                endpoint='http://127.0.0.1:1')), service_type='compute'))
        with self.assertLogs('neutron_clickos.servers', 'WARNING') as logged:
            for server_id in SERVER, OTHER:
                gone.look(server_id, 'project')
                self.assertNotIn(server_id, gone)
        self.assertEqual(1, len(logged.output))
        self.assertIn('ConnectFailure', logged.output[0])

    def test_other_texts_are_no_question(self):
        for text in ('', 'gone', f'{SERVER}/../flavors', '../x'):
            self.assertFalse(self.ask(text))
        self.assertEqual([], self.nova.asked)

    def test_nova_is_asked_once_about_a_server_that_is_gone(self):
        logins = []
        gone = servers.Gone(
            lambda: logins.append(1) or self.nova.client())
        for _ in range(3):
            gone.look(SERVER, 'project')
        gone.look(OTHER, 'project')
        self.assertEqual((4, 1), (len(self.nova.asked), len(logins)))

    def test_it_remembers_a_bounded_number(self):
        gone = servers.Gone(self.nova.client)
        for number in range(servers.MOST_KNOWN + 1):
            gone._remember(number)
        self.assertEqual((False, True, True),
                         (0 in gone, 1 in gone, servers.MOST_KNOWN in gone))

    def test_a_slow_nova_holds_few_requests_and_one_of_a_project(self):
        waiting, release = threading.Semaphore(0), threading.Event()

        def wait():
            waiting.release()
            release.wait(60)
        self.nova.wait = wait
        self.addCleanup(release.set)
        gone = servers.Gone(self.nova.client)
        slow = [threading.Thread(target=gone.look,
                                 args=(SERVER, f'project{number}'))
                for number in range(servers.MOST_QUESTIONS)]
        for number, thread in enumerate(slow):
            thread.start()
            self.assertTrue(waiting.acquire(timeout=60))
            if number == 0:
                gone.look(OTHER, 'project0')    # returns at once
        gone.look(OTHER, 'another')
        self.assertEqual(servers.MOST_QUESTIONS, len(self.nova.asked))
        release.set()
        for thread in slow:
            thread.join()
        gone.look(OTHER, 'project0')
        self.assertIn(OTHER, gone)

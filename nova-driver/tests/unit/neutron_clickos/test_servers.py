# SPDX-License-Identifier: Apache-2.0
"""Questions about servers, to a Nova that answers over HTTP."""

import http.server
import threading
import unittest
from unittest import mock

from keystoneauth1 import adapter
from keystoneauth1 import noauth
from keystoneauth1 import session

from neutron_clickos import servers

SERVER = '6f70656e-7374-4163-8b00-000000000001'


class Nova(http.server.BaseHTTPRequestHandler):
    """Answers each question with the status of its server."""

    def do_GET(self):
        self.server.paths.append(self.path)
        self.send_response(self.server.status)
        self.send_header('Content-Length', '2')
        self.end_headers()
        self.wfile.write(b'{}')

    def log_message(self, *_):
        pass


class ServersTest(unittest.TestCase):

    def ask(self, status, server_id=SERVER):
        nova = http.server.HTTPServer(('127.0.0.1', 0), Nova)
        self.addCleanup(nova.server_close)
        nova.status, nova.paths = status, []
        url = f'http://127.0.0.1:{nova.server_port}'
        thread = threading.Thread(target=nova.serve_forever)
        thread.start()
        client = adapter.Adapter(session.Session(
            auth=noauth.NoAuth(endpoint=url)), service_type='compute')
        try:
            with mock.patch.object(servers, '_client', return_value=client):
                return servers.is_gone(server_id), nova.paths
        finally:
            nova.shutdown()
            thread.join()

    def test_only_an_unknown_server_is_gone(self):
        path = [f'/servers/{SERVER}']
        self.assertEqual((True, path), self.ask(404))
        for status in 200, 401, 403, 500, 503:
            self.assertEqual((False, path), self.ask(status))

    def test_a_nova_that_is_away_says_nothing(self):
        client = adapter.Adapter(session.Session(auth=noauth.NoAuth(
            endpoint='http://127.0.0.1:1')), service_type='compute')
        with mock.patch.object(servers, '_client', return_value=client):
            self.assertFalse(servers.is_gone(SERVER))

    def test_other_texts_are_no_question(self):
        for text in ('', 'gone', f'{SERVER}/../flavors', '../x'):
            self.assertEqual((False, []), self.ask(404, text))

# SPDX-License-Identifier: Apache-2.0
"""Slow clients hold connections, but no thread of a service."""

import http.client
import socket
import time
import unittest

from clickos_lab.config import front
from clickos_lab import paths
from clickos_lab import settings
from clickos_lab.suites import slow

_CONNECTIONS = 500
#: Those attacked here; ``make soak PARTS=attack`` attacks all.
_SERVICES = 'keystone', 'clickos'
_LOOKS = 40


class FrontTest(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.settings = settings.Settings.load(paths.State())

    def request(self, name, method, path, body=None, headers=None):
        connection = http.client.HTTPConnection(
            '127.0.0.1', self.settings.ports[name], timeout=60)
        self.addCleanup(connection.close)
        connection.request(method, path, body, headers or {})
        answer = connection.getresponse()
        return answer.status, answer.read()

    def test_slow_clients_keep_nobody_waiting(self):
        for name, kind, held, asked, good in slow.attack(
                self.settings, _CONNECTIONS, 3, _SERVICES):
            self.assertEqual((name, kind, asked), (name, kind, good))
            self.assertGreater(held, _CONNECTIONS * 0.9, (name, kind))

    def test_one_address_has_a_limit_and_another_is_served(self):
        port = self.settings.ports['clickos']
        with slow.SlowClients(port, 'body', front.CONNECTIONS + 100,
                              '127.0.0.2'):
            # The limit of requests a second delays the last connections.
            refused = any(self.is_refused(port, '127.0.0.2')
                          for _ in range(_LOOKS))
            self.assertTrue(refused)
            self.assertEqual(10, slow.served(port, 10))

    def is_refused(self, port, source):
        time.sleep(0.5)
        with socket.create_connection(
                ('127.0.0.1', port), 20, (source, 0)) as client:
            client.sendall(b'GET / HTTP/1.0\r\n\r\n')
            return b' 429 ' in client.recv(4096)

    def test_a_body_beyond_the_limit_is_refused_with_the_limit(self):
        status, text = self.request('nova', 'POST', '/v2.1', b'a' * 1100000)
        self.assertEqual(413, status)
        self.assertIn(b'larger than the 1m', text)

    def test_a_version_document_names_the_address_that_was_asked(self):
        for name, path in (('keystone', '/v3'), ('nova', '/v2.1'),
                           ('neutron', '/'), ('glance', '/')):
            _, text = self.request(name, 'GET', path, headers={
                'X-Forwarded-Host': 'evil.example',
                'X-Forwarded-Proto': 'gopher',
                'Forwarded': 'host=evil.example'})
            self.assertNotIn(b'evil', text, name)
            self.assertNotIn(b'gopher', text, name)
            address = f'http://127.0.0.1:{self.settings.ports[name]}/'
            self.assertIn(address.encode(), text, name)

    def test_a_chunked_body_arrives_whole(self):
        pieces = iter([b'{"auth": ', b'{}}'])
        status, text = self.request(
            'keystone', 'POST', '/v3/auth/tokens', pieces,
            {'Content-Type': 'application/json'})
        self.assertEqual(400, status, text)
        self.assertIn(b'identity', text)

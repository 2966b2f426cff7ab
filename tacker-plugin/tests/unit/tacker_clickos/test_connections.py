# SPDX-License-Identifier: Apache-2.0
"""Connections that hold threads of Tacker's APIs without a request."""

import contextlib
import socket
from unittest import mock

import eventlet
from eventlet import wsgi

from tacker_clickos import api_filter
from tacker_clickos import chunked
from tacker_clickos import connections
from tacker_clickos import front
from tests.unit.tacker_clickos import base

_GET = b'GET / HTTP/1.1\r\nHost: tacker\r\n'
_END = b'\r\n'
_SOCKET = eventlet.patcher.original('socket')


class ConnectionsTestCase(base.TestCase):
    """With a server as Tacker's."""

    #: Threads of the server, of which one is kept
    threads = 8

    def setUp(self):
        super().setUp()
        self.enterContext(mock.patch.object(wsgi, 'server', wsgi.server))
        self.answer, self.requests, self.waited = b'answer', [], []
        self.log = mock.Mock(spec_set=('debug', 'info', 'error'))
        application = front.factory({})(self.application)
        listening = eventlet.listen(('127.0.0.1', 0))
        self.place = listening.getsockname()
        self.pool = eventlet.GreenPool(self.threads)
        self.pool.waitall = lambda: None    # a thread of it calls this
        self.waiting = connections.Waiting(self.pool)
        self.patch(connections, 'Waiting', return_value=self.waiting)
        # Tacker's server has a thread of its own pool.
        server = self.pool.spawn(wsgi.server, listening, application,
                                 custom_pool=self.pool, log=self.log)
        self.addCleanup(server.kill)
        limit = eventlet.Timeout(60)
        self.addCleanup(limit.cancel)

    def application(self, environ, start_response):
        self.requests.append(environ['PATH_INFO'])
        self.waited.extend(self.waiting._waiting)
        start_response('200 OK', [('Content-Type', 'text/plain')])
        return [self.answer]

    def connect(self, *parts, address='127.0.0.1'):
        """Return a connection of a client that sends parts and then waits."""
        client = eventlet.connect(self.place, bind=(address, 0))
        # Without a reference to it eventlet would close it.
        self.addCleanup(lambda: client.close())
        for part in parts:
            client.sendall(part)
        return client

    def wait_for_its_end(self):
        """Wait until the server has no connection."""
        while self.pool.running() > 1:
            eventlet.sleep(0)

    def read(self, client):
        """Return what the server sends until it ends a connection."""
        found = b''
        with contextlib.suppress(ConnectionResetError):
            while piece := client.recv(65536):
                found += piece
        return found


class HeadTest(ConnectionsTestCase):

    def test_a_head_has_to_come_in_time(self):
        with mock.patch.object(connections, 'HEAD_S', 0.01):
            for parts in ((), (b'GET',), (_GET,), (_GET + b'a: b',),
                          (_GET + _END, _GET)):
                client = self.connect(*parts)
                found = self.read(client)
                self.assertEqual(len(parts) - 1 if parts[1:] else 0,
                                 found.count(b'200 OK'), parts)

    def test_each_byte_gives_it_no_more_time(self):
        with mock.patch.object(connections, 'HEAD_S', 0.05), \
                contextlib.suppress(ConnectionError):
            client = self.connect(_GET + b'a: ')
            while True:
                client.sendall(b'b')
                eventlet.sleep(0.001)
        self.assertEqual([], self.requests)

    def test_a_request_takes_as_long_as_it_needs(self):
        client = self.connect(_GET + b'Connection: close\r\n\r\n')
        self.assertIn(b'200 OK', self.read(client))
        self.assertEqual((1, []), (len(self.requests), self.waited))

    def test_a_head_that_ends_early_is_no_request(self):
        for head in (_GET, _GET + b'Content-Le'):
            client = self.connect(head)
            client.shutdown(socket.SHUT_WR)
            self.assertEqual(b'', self.read(client))
        self.assertEqual([], self.requests)

    def test_a_head_that_others_may_read_otherwise(self):
        for lines in (
                b'Content-Length: 0\r\nContent-Length: 5\r\n',
                b'Content-Length: 0\r\nContent-Length: 0\r\n',
                b'Content-Length: +5\r\n', b'Content-Length: 1_0\r\n',
                b'Content-Length: 0x5\r\n', b'Content-Length: \xb2\r\n',
                b'Content-Length: -5\r\n', b'Content-Length: 5, 5\r\n',
                b'Content-Length: \r\n', b'Content-Length: ' + b'1' * 4000
                + b'\r\n',
                b'Content-Length: 5\r\nTransfer-Encoding: chunked\r\n',
                b'Transfer-Encoding: gzip, chunked\r\n',
                b'Transfer-Encoding: chunked, identity\r\n',
                b'Transfer-Encoding: xchunked\r\n',
                b'Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n',
                b'Transfer-Encoding : chunked\r\n', b'no field\r\n',
                b' folded: first\r\n', b': nameless\r\n',
                b'X-Forwarded-For: a\r\n\tERROR forged\r\n',
                b'a: b\0c\r\n', b'a: b\rc\r\n', b'a: b\n',
                b'X-Forwarded-For: \x9b2J\r\n'):
            found = self.read(self.connect(_GET + lines + _END,
                                           _GET + _END))
            self.assertTrue(found.startswith(b'HTTP/1.'), lines)
            self.assertEqual(b' 400 ', found[8:13], lines)
            self.assertEqual(1, found.count(b'HTTP/1.'), lines)
        for target in (b'/\x1b[2J', b'/\x9b2J', b'/\x01'):
            found = self.read(self.connect(
                b'GET %s HTTP/1.1\r\n\r\n' % target))
            self.assertEqual(b' 400 ', found[8:13], target)
        for line in (b'GET / HTTP/1.1\n', b'GET / HTTP/1.1\r\r\n',
                     b'GET  / HTTP/1.1\r\n', b'GET\xa0/ HTTP/1.1\r\n',
                     b' GET / HTTP/1.1\r\n', b'GET /\r\n',
                     b'GET / HTTP/1.2\r\n', b'G@T / HTTP/1.1\r\n',
                     b'OPTIONS * HTTP/1.1\r\n', b'CONNECT a:1 HTTP/1.1\r\n',
                     b'GET http://a/ HTTP/1.1\r\n',
                     b'GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n'):
            found = self.read(self.connect(line + _END))
            self.assertIn(b'400', found, line)
            self.assertNotIn(b' 200 ', found, line)
        self.assertEqual([], self.requests)
        self.assertNotIn('\x1b', str(self.log.info.mock_calls))

    def test_requests_of_a_connection_are_few(self):
        with mock.patch.object(connections, 'MAX_REQUESTS', 3):
            found = self.read(self.connect((_GET + _END) * 9))
        self.assertEqual((3, 1), (found.count(b'200 OK'),
                                  found.count(b'Connection: close')))
        self.assertEqual(3, len(self.requests))

    def test_a_fault_shows_no_stack(self):
        self.answer = None
        found = self.read(self.connect(_GET + _END))
        self.assertEqual((b' 500 ', b''), (
            found[8:13], found.partition(b'\r\n\r\n')[2]))


class BodyTest(ConnectionsTestCase):

    def setUp(self):
        super().setUp()
        self.bodies = []

    def application(self, environ, start_response):
        self.bodies.append(environ['wsgi.input'].read())
        return super().application(environ, start_response)

    def test_a_client_of_http_1_0_gets_one_answer(self):
        found = self.read(self.connect(
            b'POST / HTTP/1.0\r\nContent-Length: 2\r\n'
            b'Expect: 100-continue\r\n\r\n{}'))
        self.assertEqual(b' 200 ', found[8:13])
        self.assertEqual([b'{}'], self.bodies)

    def post(self, *parts):
        """Return the answers to a body in chunks and another request."""
        return self.read(self.connect(
            b'POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n',
            *parts, _GET + b'Connection: close\r\n\r\n'))

    def test_a_body_as_of_any_client(self):
        for body in (b'2\r\n{}\r\n0\r\n\r\n',
                     b'1;a=b\r\n{\r\n01 \r\n}\r\n000\r\n\r\n',
                     b'2\r\n{}\r\n0;last\r\nA: trailer\r\n\r\n'):
            found = self.post(*(body[each:each + 1]
                                for each in range(len(body))))
            self.assertEqual(2, found.count(b' 200 '), body)
        self.assertEqual([b'{}', b''] * 3, self.bodies)

    def test_what_others_may_read_otherwise(self):
        for body in (
                b'0x2\r\n{}\r\n', b'+2\r\n{}\r\n', b'-2\r\n{}\r\n',
                b'0_2\r\n{}\r\n', b' 2\r\n{}\r\n', b'2\n{}\r\n',
                b'2;a\n\r\n{}\r\n', b'2\r\n{}\n', b'2\r\n{}junk\r\n',
                b'\r\n', b'2;' + b'a' * chunked.MAX_LINE + b'\r\n{}\r\n',
                b'2\r\n{}\r\n0\r\na: b\n\r\n',
                b'2\r\n{}\r\n0\r\n' + b'a: b\r\n' * 9999):
            found = self.post(body, b'0\r\n\r\n')
            self.assertLessEqual(found.count(b'HTTP/1.1 '), 1, body)
        self.assertEqual([], self.requests)


class ThreadsTest(ConnectionsTestCase):

    def test_addresses_that_a_client_may_choose_count_once(self):
        for one, others in (
                ('2001:db8::/64', ('2001:db8::1', '2001:db8::ff:2',
                                   '2001:db8::1%eth0')),
                ('2001:db8:0:1::/64', ('2001:db8:0:1::1',)),
                ('fe80::/64', ('fe80::1%2',)),
                ('192.0.2.1', ('192.0.2.1', '::ffff:192.0.2.1')),
                ('192.0.2.2', ('192.0.2.2',)), ('unix', ('unix',))):
            for address in others:
                self.assertEqual(one, connections._client(address))

    def test_connections_that_wait_leave_threads_to_others(self):
        waiting = [eventlet.connect(self.place)]
        # Others come faster than the server begins to serve them.
        for _number in range(3 * self.threads):
            waiting.append(_SOCKET.create_connection(self.place))
            self.addCleanup(waiting[-1].close)
        for _number in range(3):
            client = self.connect(_GET + b'Connection: close\r\n\r\n')
            self.assertIn(b'200 OK', self.read(client))
        self.assertEqual(b'', self.read(waiting[0]))
        self.assertLess(self.pool.running(), self.threads)

    def test_rests_of_bodies_leave_threads_to_others(self):
        """They need no token, and each has some seconds."""
        with mock.patch.multiple(api_filter, _REST_S=999,
                                 _REST_OF_EXCESS_S=999):
            for number in range(3 * self.threads):
                self.connect(_GET + b'Content-Length: 9\r\n\r\n')
                while len(self.requests) == number:
                    eventlet.sleep(0)
            client = self.connect(_GET + b'Connection: close\r\n\r\n')
            self.assertIn(b'200 OK', self.read(client))

    def test_those_of_the_address_with_the_most_end_first(self):
        other = self.connect(address='127.0.0.2')
        many = [self.connect() for _number in range(2 * self.threads)]
        self.assertEqual(b'', self.read(many[0]))
        other.sendall(_GET + b'Connection: close\r\n\r\n')
        self.assertIn(b'200 OK', self.read(other))

    def test_a_client_that_reads_no_answer(self):
        self.answer = b'x' * (64 << 20)
        slow = [self.connect(_GET + _END) for _number in range(self.threads)]
        self.assertEqual(b'HTTP', slow[-1].recv(4))
        self.answer = b'answer'
        client = self.connect(_GET + b'Connection: close\r\n\r\n')
        self.assertIn(b'200 OK', self.read(client))

    def test_a_client_has_to_take_an_answer_in_time(self):
        self.answer = b'x' * (64 << 20)
        with mock.patch.object(connections, 'ANSWER_S', 0.01):
            client = self.connect(_GET + _END)
            client.recv(4)
            self.wait_for_its_end()
        self.assertLess(len(self.read(client)), len(self.answer))

    def test_a_head_that_comes_when_its_connection_ends(self):
        """No client would learn what became of the request."""
        client = self.connect()
        while not self.waiting._waiting:
            eventlet.sleep(0)
        (connection,), = self.waiting._waiting.values()
        client.sendall(_GET + _END)
        self.waiting._end(connection)
        self.assertEqual(b'', self.read(client))
        self.wait_for_its_end()
        self.assertEqual([], self.requests)
        self.assertEqual(set(), self.waiting._ending)

    def test_no_place_is_counted_after_its_end(self):
        for parts in ((), (_GET,), (b'GET / \r\n\r\n',), (_GET + _END,)):
            for _number in range(self.threads):
                self.connect(*parts).close()
                eventlet.sleep(0)
        self.wait_for_its_end()
        self.assertEqual(({}, set()),
                         (self.waiting._waiting, self.waiting._ending))


class InstallTest(base.TestCase):

    def test_it_bounds_a_server_once(self):
        self.enterContext(mock.patch.object(
            wsgi, 'server', lambda *_, **named: named))
        front.factory({})
        bounded = wsgi.server
        front.factory({})
        self.assertIs(bounded, wsgi.server)
        self.assertEqual({'custom_pool', 'debug', 'protocol'},
                         wsgi.server(None, None).keys())

# SPDX-License-Identifier: Apache-2.0
import base64
import concurrent.futures
import os
import pickle
import socket
import tempfile
import threading
import time
import unittest

import cosmos_client
from cosmos_client import connection
from cosmos_client import CosmosClient
from cosmos_client import CosmosError

from tests.unit import server

UUID = '3f0a6d4e-6f0e-4a4e-9c1c-0d4b0f3f2a11'


class ClientCase(unittest.TestCase):
    def serve(self, handler):
        srv = server.Server(handler)
        self.addCleanup(srv.close)
        return srv, CosmosClient(srv.path, timeout_s=60)

    def failure(self, call, *args, **kwargs):
        with self.assertRaises(CosmosError) as caught:
            call(*args, **kwargs)
        return caught.exception


class TestImages(ClientCase):
    """An image travels in pieces until the daemon has it."""

    def setUp(self):
        super().setUp()
        self.size = (2 << 20) + 7
        self.server, self.client = self.serve(
            lambda _file, request: server.ok(complete=self._has(request)))

    def _has(self, request):
        args = request['args']
        end = args['offset'] + len(base64.b64decode(args['data']))
        return end >= self.size

    def _give(self, chunks):
        self.client.image_add('ab' * 32, (2 << 20) + 7, chunks)
        return [base64.b64decode(r['args']['data'])
                for r in self.server.requests]

    def test_chunks_of_any_size_become_pieces(self):
        image = bytes(range(256)) * (1 << 13) + b'theend!'
        chunks = [image[i:i + 777777] for i in range(0, len(image), 777777)]
        pieces = self._give(chunks)
        self.assertEqual([1 << 20, 1 << 20, 7], [len(p) for p in pieces])
        self.assertEqual(image, b''.join(pieces))
        self.assertEqual([0, 1 << 20, 2 << 20],
                         [r['args']['offset'] for r in self.server.requests])

    def test_an_image_that_is_there_is_not_sent_again(self):
        self.size = 0
        self.assertEqual(1, len(self._give([b'x' * (2 << 20), b'theend!'])))

    def test_an_image_that_ends_early_is_told(self):
        error = self.failure(self._give, [b'short'])
        self.assertEqual('bad-image', error.code)
        self.assertIn('5 of 2097159 bytes', error.message)


class TestSession(ClientCase):
    def test_its_calls_share_one_connection(self):
        connections = []

        def answer(file, _request):
            connections.append(file)
            return server.ok()
        _, client = self.serve(answer)
        session = client.session()
        self.addCleanup(session.close)
        for verb in ('migrate-begin', 'migrate-commit'):
            session.call(verb, uuid=UUID)
        client.call('destroy', uuid=UUID)
        self.assertIs(connections[0], connections[1])
        self.assertIsNot(connections[0], connections[2])


class TestOlderDaemon(ClientCase):
    """A daemon of the release before, whose verbs have other names."""

    def answer(self, _file, request):
        verb = request['verb']
        if verb in ('create', *cosmos_client.client._OLD_NAMES.values()):
            return server.error('bad-request', '%s: bad' % verb) \
                if request['args'] else server.ok(by=verb)
        return server.error('bad-request', 'unknown verb "%s"' % verb)

    def test_it_is_asked_by_the_name_that_it_knows(self):
        _, asked = self.serve(self.answer)
        session = asked.session()
        self.addCleanup(session.close)
        for new, old in cosmos_client.client._OLD_NAMES.items():
            self.assertEqual({'by': old}, asked.call(new))
            self.assertEqual({'by': old}, session.call(new))
            self.assertEqual('%s: bad' % old,
                             self.failure(asked.call, new, a=1).message)

    def test_nothing_else_is_asked_twice(self):
        srv, asked = self.serve(self.answer)
        self.assertEqual('create: bad',
                         self.failure(asked.call, 'create', a=1).message)
        self.assertIn('unknown verb',
                      self.failure(asked.call, 'nothing').message)
        self.assertEqual(['create', 'nothing'],
                         [each['verb'] for each in srv.requests])


class TestErrors(ClientCase):
    def test_daemon_error_is_raised_verbatim(self):
        text = 'fw.click:1:1: no element class "Nope"\nfw.click:2:1: …'
        _, client = self.serve(
            lambda _file, _request: server.error('bad-config', text))
        error = self.failure(client.call, 'list')
        self.assertEqual(('bad-config', text), (error.code, error.message))
        self.assertIn(text, str(error))

    def test_error_survives_pickling(self):
        error = pickle.loads(pickle.dumps(CosmosError('exists', 'x')))
        self.assertEqual(('exists', 'x'), (error.code, error.message))

    def test_missing_socket(self):
        error = self.failure(CosmosClient('/nonexistent/s').call, 'hello')
        self.assertEqual('unavailable', error.code)
        self.assertIn('/nonexistent/s', error.message)
        self.assertIn('No such file', error.message)

    def test_refusing_socket(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, 's')
            with socket.socket(socket.AF_UNIX) as sock:
                sock.bind(path)
            error = self.failure(CosmosClient(path).call, 'hello')
        self.assertEqual('unavailable', error.code)
        self.assertIn('refused', error.message)

    def test_too_long_a_path(self):
        error = self.failure(CosmosClient('/nonexistent/' + 'x' * 300).call,
                             'hello')
        self.assertEqual('unavailable', error.code)

    def test_valed_goes_by_its_name(self):
        error = self.failure(cosmos_client.Daemon('/nonexistent/v').call,
                             'port-list')
        self.assertIn('valed is not reachable', error.message)

    def test_silent_daemon(self):
        released = threading.Event()
        srv, _ = self.serve(lambda _file, _request: released.wait(60) and None)
        self.addCleanup(released.set)
        begin = time.monotonic()
        error = self.failure(CosmosClient(srv.path, timeout_s=0.2).call,
                             'hello')
        self.assertEqual('client-timeout', error.code)
        self.assertLess(time.monotonic() - begin, 30)

    def test_deadline_of_the_guest_is_added(self):
        def late(_file, _request):
            time.sleep(0.4)
            return server.ok(domid=1)
        srv, _ = self.serve(late)
        client = CosmosClient(srv.path, timeout_s=0.1)
        self.assertEqual({'domid': 1}, client.call(
            'router-install', uuid=UUID, timeout_ms=60000))

    def test_daemon_that_hangs_up(self):
        _, client = self.serve(lambda _file, _request: None)
        self.assertEqual('unavailable',
                         self.failure(client.call, 'hello').code)

    def test_answers_that_are_not_the_protocol(self):
        for answer in (b'nonsense\n', b'[]\n', b'{"v":2,"ok":{}}\n',
                       b'{"v":1}\n', b'{"v":1,"ok":[]}\n', b'\xff\n'):
            _, client = self.serve(lambda _file, _request: answer)
            error = self.failure(client.call, 'hello')
            self.assertEqual('bad-answer', error.code, answer)

    def test_request_above_the_limit_is_not_sent(self):
        srv, client = self.serve(lambda _file, _request: server.ok())
        error = self.failure(client.call, 'handler-write', uuid=UUID,
                             writes=[('a.b', 'x' * cosmos_client.MAX_LINE)])
        self.assertEqual('too-long', error.code)
        self.assertEqual([], srv.requests)

    def test_answer_above_the_limit(self):
        _, client = self.serve(
            lambda _file, _request: b'x' * (cosmos_client.MAX_LINE + 1))
        self.assertEqual('too-long', self.failure(client.call, 'hello').code)

    def test_answer_of_too_many_values(self):
        _, client = self.serve(
            lambda _file, _request: server.ok(a=[0] * connection.MAX_VALUES))
        self.assertEqual('bad-answer',
                         self.failure(client.call, 'hello').code)

    def test_values_are_counted_outside_of_texts(self):
        for line, values in ((b'{}', 2), (b'[1,"a,[{"]', 3), (b'"\\",["', 1),
                             (b'"\\\\",[', 3), (b'"', 1), (b'"\\', 1)):
            self.assertEqual(values, connection._values(line), line)
        connection._values(b'"' + b'\\"' * (1 << 20))

    def test_large_answer_within_the_limit(self):
        _, client = self.serve(
            lambda _file, _request: server.ok(text='x' * (3 << 20)))
        self.assertEqual(3 << 20, len(client.call('console')['text']))

    def test_arguments_json_cannot_carry(self):
        _, client = self.serve(lambda _file, _request: server.ok())
        for value in (object(), b'bytes', float('nan')):
            error = self.failure(client.call, 'handler-write',
                                 writes=[('a.b', value)])
            self.assertEqual('bad-request', error.code)


class TestThreads(ClientCase):
    def test_calls_of_many_threads(self):
        def answer(_file, request):
            return server.ok(name=request['args']['name'])
        _, client = self.serve(answer)
        names = ['e%d.count' % n for n in range(100)]
        with concurrent.futures.ThreadPoolExecutor(20) as pool:
            got = pool.map(lambda n: client.call('handler-read', name=n),
                           names)
            self.assertEqual([{'name': n} for n in names], list(got))


class TestEvents(ClientCase):
    def events(self, *lines):
        def answer(file, _request):
            file.write(b'{"v":1,"id":1,"ok":{}}\n' + b''.join(lines))
            file.flush()
            return None if lines else b''
        return self.serve(answer)

    def test_events_arrive_in_order_until_the_daemon_goes(self):
        _, client = self.events(
            b'{"v":1,"event":"died","data":{"uuid":"a"}}\n',
            b'{"v":1,"event":"state","data":{"uuid":"b"}}\n')
        with client.events() as stream:
            self.assertEqual({'event': 'died', 'data': {'uuid': 'a'}},
                             next(stream))
            self.assertEqual('state', next(stream)['event'])
            error = self.failure(next, stream)
        self.assertEqual('unavailable', error.code)

    def test_waiting_ends_at_the_deadline(self):
        _, client = self.events()
        with client.events() as stream:
            self.assertIsNone(stream.next_event(0.05))

    def test_close_wakes_the_reader(self):
        _, client = self.events()
        stream = client.events()
        got = []
        reader = threading.Thread(target=lambda: got.extend(stream))
        reader.start()
        stream.close()
        reader.join(60)
        self.assertFalse(reader.is_alive())
        self.assertEqual([], got)
        stream.close()

    def test_refused_subscription(self):
        _, client = self.serve(
            lambda _file, _request: server.error('forbidden', 'no role'))
        self.assertEqual('forbidden', self.failure(client.events).code)

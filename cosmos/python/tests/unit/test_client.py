# SPDX-License-Identifier: Apache-2.0
import base64
import concurrent.futures
import json
import os
import pathlib
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

import jsonschema

from tests.unit import server

#: what cosmosd takes and answers, made from its own types
CONTRACT = json.loads(
    (pathlib.Path(__file__).parents[4] / 'interfaces' / 'clickos_client' /
     'contract.json').read_text())
UUID = '3f0a6d4e-6f0e-4a4e-9c1c-0d4b0f3f2a11'


def validate(args, verb):
    """Fail unless cosmosd's verb takes these arguments."""
    args_of = CONTRACT['cosmosd'][verb]['args']
    schema = {**args_of, '$defs': CONTRACT['$defs']}
    jsonschema.validate(args, schema)


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


class TestVerbs(ClientCase):
    def setUp(self):
        super().setUp()
        self.server, self.client = self.serve(
            lambda _file, request: server.ok(verb=request['verb']))

    def sent(self, call, *args, **kwargs):
        answer = call(*args, **kwargs)
        request = self.server.requests[-1]
        self.assertEqual({'verb': request['verb']}, answer)
        self.assertEqual(1, request['v'])
        validate(request['args'], request['verb'])
        return request['verb'], request['args']

    def test_verbs_without_arguments(self):
        self.assertEqual(('hello', {}), self.sent(self.client.hello))
        self.assertEqual(('host', {}), self.sent(self.client.host))
        self.assertEqual(('list', {}), self.sent(self.client.list))

    def test_verbs_of_a_guest(self):
        for verb in ('destroy', 'info', 'pause', 'unpause'):
            self.assertEqual((verb, {'uuid': UUID}),
                             self.sent(getattr(self.client, verb), UUID))

    def test_find(self):
        self.assertEqual(('find', {'name': 'fw'}),
                         self.sent(self.client.find, 'fw'))

    def test_create(self):
        vif = {'devid': 0, 'mac': '02:00:00:00:00:01', 'switch': 'vale0',
               'port': 'a', 'segment': 1, 'allowed': [],
               'port_security': True, 'mtu': 1500, 'slots': 256}
        verb, args = self.sent(
            self.client.create, UUID, 'fw', 'ab' * 32, 8, (vif,), 'Idle;',
            'fw.click', writes=[('a.b', 'c')], timeout_ms=7000)
        self.assertEqual('create', verb)
        self.assertEqual(
            {'uuid': UUID, 'name': 'fw', 'image_sha256': 'ab' * 32,
             'memory_mib': 8, 'vifs': [vif], 'config': 'Idle;',
             'config_name': 'fw.click', 'writes': [['a.b', 'c']],
             'timeout_ms': 7000}, args)

    def test_numbered_changes(self):
        stamp = {'number': 7, 'incarnation': UUID}
        for call, verb in (
                (lambda: self.client.handler_write(
                    UUID, [('a.b', 'c')], stamp=stamp), 'handler-write'),
                (lambda: self.client.router_install(
                    UUID, 'Idle;', 'i', stamp=stamp), 'router-install')):
            sent, args = self.sent(call)
            self.assertEqual((verb, stamp), (sent, args['stamp']))
        self.assertEqual(('change-settle', {'uuid': UUID, 'number': 7}),
                         self.sent(self.client.change_settle, UUID, 7))
        self.assertEqual(('release', {'uuid': UUID}),
                         self.sent(self.client.release, UUID))
        _, args = self.sent(self.client.create, UUID, 'fw', 'ab' * 32, 8, (),
                            'Idle;', 'i', number=7, hold=True)
        self.assertEqual((7, True), (args['number'], args['hold']))

    def test_create_with_vifs_of_netback(self):
        nic = {'devid': 0, 'mac': '02:00:00:00:00:01', 'bridge': 'br0',
               'mtu': 1500}
        _, args = self.sent(self.client.create, UUID, 'fw', 'ab' * 32, 8, (),
                            'Idle;', 'fw.click', nics=(nic,))
        self.assertEqual(([], [nic]), (args['vifs'], args['nics']))

    def test_what_only_a_xen_host_does(self):
        cpu = {'pin': 1, 'weight': 256, 'cap_percent': 50}
        self.assertEqual(('cpu', {'uuid': UUID, 'cpu': cpu}),
                         self.sent(self.client.cpu, UUID, 1, cap_percent=50))
        for verb in ('save', 'restore'):
            self.assertEqual((verb, {'uuid': UUID}),
                             self.sent(getattr(self.client, verb), UUID))

    def test_routers_run_and_halt(self):
        args = {'uuid': UUID, 'rid': 2, 'run': False, 'timeout_ms': 10000}
        self.assertEqual(('router-run', args), self.sent(
            self.client.router_run, UUID, False, rid=2))
        _, args = self.sent(self.client.router_install, UUID, 'Idle;', 'x',
                            halted=True)
        self.assertTrue(args['halted'])

    def test_interfaces_come_and_go(self):
        self.assertEqual(
            ('vif-unplug', {'uuid': UUID, 'devid': 1}),
            self.sent(self.client.vif_unplug, UUID, 1))
        vif = {'devid': 1, 'mac': '02:00:00:00:00:01', 'switch': 'vale0',
               'port': 'p1', 'segment': 1, 'allowed': [],
               'port_security': False, 'mtu': 1500, 'slots': 64}
        self.assertEqual(('vif-plug', {'uuid': UUID, 'vif': vif}),
                         self.sent(self.client.vif_plug, UUID, vif))

    def test_a_session_moves_a_guest_over_one_connection(self):
        session = self.client.session()
        self.addCleanup(session.close)
        for call in (session.move_begin, session.move_cancel):
            verb, args = self.sent(call, UUID)
            self.assertEqual({'uuid': UUID, 'timeout_ms': 10000}, args)
        self.assertEqual(('move-settle', {'uuid': UUID}),
                         self.sent(session.move_settle, UUID))
        verb, args = self.sent(session.move_receive, UUID, 'g', 'ab' * 32, 8,
                               [], 'Idle;', 'x.click')
        self.assertEqual(('move-receive', []), (verb, args['writes']))
        changes = {'incarnation': UUID, 'newest': 7, 'applied': [7]}
        self.assertEqual(
            ('move-arrive', {'uuid': UUID, 'routers': [0, 2],
                             'changes': changes, 'timeout_ms': 10000}),
            self.sent(session.move_arrive, UUID, [0, 2], changes))

    def test_ports(self):
        self.assertEqual(('vif-remove', {'uuid': UUID, 'devid': 1}),
                         self.sent(self.client.vif_remove, UUID, 1))
        self.assertEqual(
            ('vif-set', {'uuid': UUID, 'devid': 0, 'link_up': False,
                         'domid': 7}),
            self.sent(self.client.vif_set, UUID, 0, False, domid=7))

    def test_filters_and_limits(self):
        rule = {'direction': 'ingress', 'family': 'ipv4', 'protocol': 6,
                'ports': {'first': 80, 'last': 90}, 'remote': '10.0.0.0/8'}
        for rules in ([rule], [], None):
            self.assertEqual(
                ('port-filter', {'switch': 'vale0', 'port': 'p',
                                 'rules': rules}),
                self.sent(self.client.port_filter, 'vale0', 'p', rules))
        limits = {'rx': {'bits_per_s': 8000}}
        self.assertEqual(
            ('port-limit', {'switch': 'vale0', 'port': 'p',
                            'limits': limits}),
            self.sent(self.client.port_limit, 'vale0', 'p', limits))

    def test_images(self):
        self.assertEqual(('image-list', {}),
                         self.sent(self.client.image_list))
        self.assertEqual(('image-remove', {'sha256': 'ab' * 32}),
                         self.sent(self.client.image_remove, 'ab' * 32))

    def test_console_and_router(self):
        self.assertEqual(('console', {'uuid': UUID, 'max_bytes': 100}),
                         self.sent(self.client.console, UUID, 100))
        self.assertEqual(
            ('router-install', {'uuid': UUID, 'rid': 0, 'config': 'Idle;',
                                'config_name': 'x', 'timeout_ms': 10000}),
            self.sent(self.client.router_install, UUID, 'Idle;', 'x'))

    def test_router_list(self):
        self.assertEqual(('router-list', {'uuid': UUID}),
                         self.sent(self.client.router_list, UUID))

    def test_handlers(self):
        self.assertEqual(('handler-list', {'uuid': UUID, 'rid': 3}),
                         self.sent(self.client.handler_list, UUID, rid=3))
        self.assertEqual(
            ('handler-read', {'uuid': UUID, 'rid': 0, 'name': 'c.count'}),
            self.sent(self.client.handler_read, UUID, 'c.count'))
        self.assertEqual(
            ('handler-read', {'uuid': UUID, 'rid': 0, 'name': 'r.state',
                              'param': '2'}),
            self.sent(self.client.handler_read, UUID, 'r.state', param='2'))
        self.assertEqual(
            ('handlers-read', {'uuid': UUID, 'rid': 0,
                               'names': ['a.b', 'c.d']}),
            self.sent(self.client.handlers_read, UUID, ('a.b', 'c.d')))
        self.assertEqual(
            ('handlers-read', {'uuid': UUID, 'rid': 0,
                               'names': ['r.lookup', 'c.d'],
                               'params': ['192.0.2.1', '']}),
            self.sent(self.client.handlers_read, UUID, ('r.lookup', 'c.d'),
                      params=('192.0.2.1', '')))
        self.assertEqual(
            ('handler-write', {'uuid': UUID, 'rid': 0,
                               'writes': [['a.b', '1'], ['c.d', 'é']],
                               'timeout_ms': 500}),
            self.sent(self.client.handler_write, UUID,
                      (('a.b', '1'), ('c.d', 'é')), timeout_ms=500))


class TestContract(unittest.TestCase):
    def test_a_field_too_many_or_too_few_is_refused(self):
        for args in ({}, {'uuid': UUID, 'force': True}):
            with self.assertRaises(jsonschema.ValidationError):
                validate(args, 'destroy')

    def test_each_verb_but_those_of_a_move_has_a_method(self):
        verbs = [verb for verb in CONTRACT['cosmosd']
                 if not verb.startswith('move-')]
        self.assertGreater(len(verbs), 20)
        for verb in verbs:
            self.assertTrue(hasattr(CosmosClient, verb.replace('-', '_')),
                            verb)


class TestErrors(ClientCase):
    def test_daemon_error_is_raised_verbatim(self):
        text = 'fw.click:1:1: no element class "Nope"\nfw.click:2:1: …'
        _, client = self.serve(
            lambda _file, _request: server.error('bad-config', text))
        error = self.failure(client.list)
        self.assertEqual(('bad-config', text), (error.code, error.message))
        self.assertIn(text, str(error))

    def test_error_survives_pickling(self):
        error = pickle.loads(pickle.dumps(CosmosError('exists', 'x')))
        self.assertEqual(('exists', 'x'), (error.code, error.message))

    def test_missing_socket(self):
        error = self.failure(CosmosClient('/nonexistent/s').hello)
        self.assertEqual('unavailable', error.code)
        self.assertIn('/nonexistent/s', error.message)
        self.assertIn('No such file', error.message)

    def test_refusing_socket(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, 's')
            with socket.socket(socket.AF_UNIX) as sock:
                sock.bind(path)
            error = self.failure(CosmosClient(path).hello)
        self.assertEqual('unavailable', error.code)
        self.assertIn('refused', error.message)

    def test_too_long_a_path(self):
        error = self.failure(CosmosClient('/nonexistent/' + 'x' * 300).hello)
        self.assertEqual('unavailable', error.code)

    def test_silent_daemon(self):
        released = threading.Event()
        srv, _ = self.serve(lambda _file, _request: released.wait(60) and None)
        self.addCleanup(released.set)
        begin = time.monotonic()
        error = self.failure(CosmosClient(srv.path, timeout_s=0.2).hello)
        self.assertEqual('client-timeout', error.code)
        self.assertLess(time.monotonic() - begin, 30)

    def test_deadline_of_the_guest_is_added(self):
        def late(_file, _request):
            time.sleep(0.4)
            return server.ok(domid=1)
        srv, _ = self.serve(late)
        client = CosmosClient(srv.path, timeout_s=0.1)
        self.assertEqual({'domid': 1}, client.router_install(
            UUID, '', 'x', timeout_ms=60000))

    def test_daemon_that_hangs_up(self):
        _, client = self.serve(lambda _file, _request: None)
        self.assertEqual('unavailable', self.failure(client.hello).code)

    def test_answers_that_are_not_the_protocol(self):
        for answer in (b'nonsense\n', b'[]\n', b'{"v":2,"ok":{}}\n',
                       b'{"v":1}\n', b'{"v":1,"ok":[]}\n', b'\xff\n'):
            _, client = self.serve(lambda _file, _request: answer)
            self.assertEqual('bad-answer', self.failure(client.hello).code,
                             answer)

    def test_request_above_the_limit_is_not_sent(self):
        srv, client = self.serve(lambda _file, _request: server.ok())
        error = self.failure(client.handler_write, UUID,
                             [('a.b', 'x' * cosmos_client.MAX_LINE)])
        self.assertEqual('too-long', error.code)
        self.assertEqual([], srv.requests)

    def test_answer_above_the_limit(self):
        _, client = self.serve(
            lambda _file, _request: b'x' * (cosmos_client.MAX_LINE + 1))
        self.assertEqual('too-long', self.failure(client.hello).code)

    def test_answer_of_too_many_values(self):
        _, client = self.serve(
            lambda _file, _request: server.ok(a=[0] * connection.MAX_VALUES))
        self.assertEqual('bad-answer', self.failure(client.hello).code)

    def test_values_are_counted_outside_of_texts(self):
        for line, values in ((b'{}', 2), (b'[1,"a,[{"]', 3), (b'"\\",["', 1),
                             (b'"\\\\",[', 3), (b'"', 1), (b'"\\', 1)):
            self.assertEqual(values, connection._values(line), line)
        connection._values(b'"' + b'\\"' * (1 << 20))

    def test_large_answer_within_the_limit(self):
        _, client = self.serve(
            lambda _file, _request: server.ok(text='x' * (3 << 20)))
        self.assertEqual(3 << 20, len(client.console(UUID)['text']))

    def test_arguments_json_cannot_carry(self):
        _, client = self.serve(lambda _file, _request: server.ok())
        for value in (object(), b'bytes', float('nan')):
            error = self.failure(client.handler_write, UUID, [('a.b', value)])
            self.assertEqual('bad-request', error.code)


class TestThreads(ClientCase):
    def test_calls_of_many_threads(self):
        def answer(_file, request):
            return server.ok(name=request['args']['name'])
        _, client = self.serve(answer)
        names = ['e%d.count' % n for n in range(100)]
        with concurrent.futures.ThreadPoolExecutor(20) as pool:
            got = pool.map(lambda n: client.handler_read(UUID, n), names)
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

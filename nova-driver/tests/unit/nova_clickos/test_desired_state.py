# SPDX-License-Identifier: Apache-2.0
"""Desired state, asked of a real HTTP server on loopback."""

import http.server
import json
import logging
import threading

from clickos_client import document
import fixtures

from nova_clickos import desired_state
from nova_clickos import exception
from tests.unit.nova_clickos import base

SECRET = 'clickos-secret:' + base.UUID
QUERY = 'secrets=true&project_id=' + base.PROJECT


class _Handler(http.server.BaseHTTPRequestHandler):

    def do_GET(self):
        self.server.paths.append(self.path)
        self._send()

    def do_POST(self):
        size = int(self.headers['Content-Length'])
        self.server.posted = json.loads(self.rfile.read(size))
        self.do_GET()

    def _send(self):
        body = self.server.body.encode()
        self.send_response(self.server.status)
        self.send_header('Content-Type', 'application/json')
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


class DesiredStateTest(base.TestCase):

    def setUp(self):
        super().setUp()
        self.server = http.server.HTTPServer(('127.0.0.1', 0), _Handler)
        self.server.paths, self.server.status = [], 200
        self.server.body = json.dumps(
            {'revision': 2, 'writes': [['fw.config', 'deny all']]})
        thread = threading.Thread(target=self.server.serve_forever,
                                  args=(0.05,))
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)
        self.use_auth('none')
        self.conf.config(
            group='clickos', timeout=5,
            endpoint_override='http://127.0.0.1:%d' % self.server.server_port)
        self.desired_state = desired_state.DesiredState()

    def use_auth(self, auth_type):
        self.conf.config(group='clickos', auth_type=auth_type)

    def refused(self, *parts):
        error = self.assertRaises(exception.GuestNotStarted,
                                  self.desired_state.fetch, base.UUID,
                                  base.PROJECT)
        for part in ('outdated handler values',) + parts:
            self.assertIn(part, error.format_message())
        return error

    def test_writes(self):
        self.assertEqual(
            document.Desired((('fw.config', 'deny all'),), revision=2),
            self.desired_state.fetch(base.UUID, base.PROJECT))
        self.assertEqual(
            ['/v1/servers/%s/desired-state?%s' % (base.UUID, QUERY)],
            self.server.paths)

    def test_none(self):
        self.server.body = '{"revision": 0, "writes": []}'
        self.assertEqual(document.Desired(),
                         self.desired_state.fetch(base.UUID, base.PROJECT))

    def test_configuration(self):
        self.server.body = json.dumps({
            'revision': 1, 'writes': [['a.x', '1']], 'configuration': {
                'config': 'Idle;', 'config_name': 'new.click',
                'replaces': document.digest('abcd')}})
        desired = self.desired_state.fetch(base.UUID, base.PROJECT)
        first = document.Configuration('old', writes=(('b.x', '2'),))
        self.assertEqual(
            document.Configuration('Idle;', 'new.click', (('a.x', '1'),)),
            desired.onto(first, 'abcd'))
        self.assertEqual(first.updated((('a.x', '1'),)),
                         desired.onto(first, 'rebuilt'))

    def test_no_log_has_a_secret(self):
        logged = self.useFixture(fixtures.FakeLogger(level=logging.DEBUG))
        self.server.body = json.dumps({
            'writes': [['vpn.key', SECRET]], 'project_id': base.PROJECT,
            'configuration': {'config': 'Idle;', 'config_name': 'a.click'},
            'secrets': {SECRET: 'hidden'}})
        self.desired_state.fetch(base.UUID, base.PROJECT)
        self.desired_state.fetch_state(base.UUID, base.PROJECT)
        self.assertNotIn('hidden', logged.output)

    def test_secrets(self):
        self.server.body = json.dumps({
            'revision': 1, 'writes': [['a.key', SECRET]],
            'secrets': {SECRET: 'hidden'}})
        found = self.desired_state.fetch(base.UUID, base.PROJECT).secrets
        self.assertEqual([['a.key', 'hidden']],
                         found.resolved([['a.key', SECRET]]))
        self.assertNotIn('hidden', repr(found))

    def test_a_state_of_the_project(self):
        state = {'revision': 1, 'number': 4, 'writes': [],
                 'project_id': base.PROJECT, 'configuration': {
                     'config': 'Idle;', 'config_name': 'new.click'}}
        self.server.body = json.dumps(state)
        self.assertEqual(
            document.Desired((), document.Configuration('Idle;', 'new.click'),
                             None, 1, 4),
            self.desired_state.fetch_state(base.UUID, base.PROJECT))
        self.assertEqual(['/v1/states/%s?%s' % (base.UUID, QUERY)],
                         self.server.paths)
        self.assertRaises(exception.GuestNotStarted,
                          self.desired_state.fetch_state, base.UUID, 'other')
        self.server.body = json.dumps({**state, 'configuration': None})
        self.assertRaises(exception.GuestNotStarted,
                          self.desired_state.fetch_state, base.UUID,
                          base.PROJECT)

    def test_confirms_a_start(self):
        for status, expected in ((200, True), (409, False)):
            self.server.status = status
            self.assertEqual(expected, self.desired_state.confirm(
                base.UUID, base.instance(),
                document.Desired(revision=2, number=7), 'abc'))
        self.assertEqual(
            {'number': 7, 'revision': 2, 'incarnation': 'abc',
             'server_id': base.UUID, 'project_id': base.PROJECT},
            self.server.posted)
        for self.server.status in (503, 429):
            self.assertRaises(exception.ServiceUnavailable,
                              self.desired_state.confirm, base.UUID,
                              base.instance(), document.Desired(), 'abc')

    def test_a_state_that_is_unavailable_while_others_are_not(self):
        for status, code, kind in (
                (503, 'no-secret-key', exception.StateUnavailable),
                (500, 'internal', exception.StateUnavailable),
                (503, 'busy', exception.ServiceUnavailable),
                (429, 'too-many-requests', exception.ServiceUnavailable)):
            self.server.status = status
            self.server.body = json.dumps({'error': {
                'code': code, 'message': 'why'}})
            error = self.assertRaises(
                kind, self.desired_state.fetch, base.UUID, base.PROJECT)
            self.assertIs(kind, type(error))
        self.server.status = 502
        for self.server.body in ('<html>', '[]', '{"error": 7}'):
            error = self.assertRaises(
                exception.ServiceUnavailable, self.desired_state.fetch,
                base.UUID, base.PROJECT)
            self.assertIs(exception.ServiceUnavailable, type(error))

    def test_refusal(self):
        self.server.status, self.server.body = 403, 'not allowed'
        self.refused('403', 'not allowed')
        error = self.assertRaises(
            exception.GuestNotStarted, self.desired_state.fetch, base.UUID,
            base.PROJECT)
        self.assertNotIsInstance(error, exception.ServiceUnavailable)

    def test_a_page_of_a_front_names_no_host(self):
        self.server.status = 503
        self.server.body = 'upstream http://10.0.0.7:8004 of c7.internal'
        error = self.refused('answered 503: upstream ... of ...')
        self.server.body = json.dumps({'error': {
            'code': 'busy', 'message': 'rule allow 10.0.0.7'}})
        self.refused('rule allow 10.0.0.7')
        self.assertIs(exception.ServiceUnavailable, type(error))

    def test_not_an_answer(self):
        for body in ('', '[]', '{}', '{"writes": 3}', '{"writes": [3]}',
                     '{"writes": [["a"]]}',
                     '{"writes": [], "configuration": 7}',
                     '{"writes": [], "configuration": {"config": "", '
                     '"config_name": "a", "replaces": ""}}',
                     '{"writes": [["a", 1, 2]]}'):
            self.server.body = body
            self.refused('no list of writes')

    def test_away(self):
        self.conf.config(group='clickos',
                         endpoint_override='http://127.0.0.1:1')
        error = self.refused('cannot be asked (ConnectFailure)')
        # The tenant reads it.
        self.assertNotIn('127.0.0.1', error.format_message())

    def test_no_credentials(self):
        self.use_auth(None)
        self.refused('[clickos] auth_type')

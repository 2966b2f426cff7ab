# SPDX-License-Identifier: Apache-2.0
"""Connections and the client of clickos-api."""

import json
from unittest import mock

from clickos_client import outcomes
from keystoneauth1 import adapter
from keystoneauth1 import exceptions as ka_exceptions
import requests

from tacker_clickos import clickos_api
from tacker_clickos import exception
from tacker_clickos import vim
from tests.unit.tacker_clickos import base


class ConnectTest(base.TestCase):

    def setUp(self):
        super().setUp()
        vim._connections.clear()
        self.addCleanup(vim._connections.clear)
        self.open = self.patch(vim.openstack, 'connect')
        self.open.side_effect = lambda **given: mock.Mock(
            spec_set=('config',))

    def test_one_for_the_same_credentials(self):
        vim.connect(dict(base.ACCESS))
        vim.connect(dict(base.ACCESS))
        self.assertEqual(1, self.open.call_count)
        vim.connect(dict(base.ACCESS, password='changed'))
        self.assertEqual(2, self.open.call_count)

    def test_no_more_than_the_limit(self):
        for number in range(vim.MAX_CONNECTIONS + 5):
            vim.connect(dict(base.ACCESS, username=str(number)))
        self.assertEqual(vim.MAX_CONNECTIONS, len(vim._connections))

    def test_no_secret_is_kept_as_a_key(self):
        vim.connect(dict(base.ACCESS))
        self.assertNotIn(base.ACCESS['password'], repr(vim._connections))

    def test_certificates_are_checked_unless_the_vim_says_no(self):
        vim.connect(dict(base.ACCESS))
        self.assertIs(True, self.open.call_args.kwargs['verify'])
        vim.connect(dict(base.ACCESS, cert_verify='False'))
        self.assertIs(False, self.open.call_args.kwargs['verify'])


class ClickosApiTest(base.TestCase):

    def setUp(self):
        super().setUp()
        self.request = self.patch(adapter.Adapter, 'request')
        connection = mock.Mock(spec_set=('session', 'config'))
        connection.config.get_region_name.return_value = None
        self.client = clickos_api.Client(connection)

    def answer(self, status, body):
        """Let clickos-api answer with an object as JSON, or with text."""
        response = requests.Response()
        response.status_code = status
        response.request = requests.Request('GET', 'http://api').prepare()
        text = body if isinstance(body, str) else json.dumps(body)
        response._content = text.encode()
        self.request.side_effect = lambda *a, **k: response

    def test_errors_keep_code_message_and_status(self):
        self.answer(400, {'error': {'code': 'handler-error',
                                    'message': 'fw.config: 100% wrong'}})
        with self.assertRaises(exception.HandlerRefused) as refused:
            self.client.write('s', [['fw.config', 'x']])
        self.assertEqual('handler-error: fw.config: 100% wrong',
                         str(refused.exception))
        self.assertEqual(400, refused.exception.status)

    def test_messages_are_bounded(self):
        self.answer(400, {'error': {'code': 'x' * 9000,
                                    'message': 'y' * 9000}})
        with self.assertRaisesRegex(exception.HandlerRefused,
                                    '^x{64}: y{4000}$'):
            self.client.write('s', [])

    def test_answers_of_something_else(self):
        for status, body in ((502, '<html>' + 'x' * 9000), (404, []),
                             (403, {}), (404, {'error': 'x'}),
                             (200, '<html>'), (200, []), (200, {})):
            self.answer(status, body)
            with self.assertRaisesRegex(exception.ApiUnavailable,
                                        'clickos-api: ') as failed:
                self.client.desired_writes('s')
            self.assertLess(len(str(failed.exception)), 5000)

    def test_no_service_and_no_answer(self):
        for error in (ka_exceptions.EndpointNotFound('no clickos service'),
                      ka_exceptions.ConnectFailure('refused')):
            self.request.side_effect = error
            with self.assertRaisesRegex(exception.ApiUnavailable,
                                        'clickos-api: '):
                self.client.desired_writes('s')

    def test_a_write_without_an_answer_is_repeated(self):
        self.patch(clickos_api.time, 'sleep')
        answers = []
        for status, body in (
                (503, {'error': {'code': 'nova', 'message': 'is away'}}),
                (200, {'revision': 7})):
            self.answer(status, body)
            answers.append(self.request.side_effect())
        self.request.side_effect = [
            ka_exceptions.ConnectTimeout('stopped'),
            ka_exceptions.ConnectFailure('refused'), *answers]
        self.assertEqual(7, self.client.write('s', [['a.b', 'x']]))
        self.assertEqual(4, self.request.call_count)

    def test_a_write_is_not_repeated_for_ever(self):
        self.patch(clickos_api.time, 'sleep')
        self.patch(clickos_api.time, 'monotonic',
                   side_effect=[0, clickos_api._PATIENCE_S + 1])
        # By its name: Horizon's tests change the order in the same process.
        self.request.side_effect = ka_exceptions.ConnectTimeout(
            message='stopped')
        with self.assertRaises(exception.ApiUnavailable) as failed:
            self.client.write('s', [['a.b', 'x']])
        self.assertEqual(1, self.request.call_count)
        self.assertEqual('unknown', failed.exception.outcome)
        self.assertEqual('clickos-api: stopped: '
                         + outcomes.TEXTS['unknown'], str(failed.exception))

    def changes(self, *ends):
        """Let writes get 202, and the change then one of the ends."""
        answers = []
        for end in ends:
            for status, body in ((202, {'change': {'number': 5}}),
                                 (200, {'change': {'number': 5, **end}})):
                self.answer(status, body)
                answers.append(self.request.side_effect())
        self.request.side_effect = answers

    @staticmethod
    def ended(code):
        """Return the end of a change by a cause."""
        return {'status': outcomes.of(code), 'error': {
            'code': code, 'message': outcomes.message(code)}}

    def test_a_write_that_did_not_reach_the_guest_is_repeated(self):
        self.patch(clickos_api.time, 'sleep')
        self.changes(self.ended('not-received'),
                     {'status': 'applied', 'revision': 7})
        self.assertEqual(7, self.client.write('s', [['a.b', 'x']]))

    def test_each_other_end_has_its_word(self):
        self.patch(clickos_api.time, 'sleep')
        for code in ('overtaken', 'restarted', 'no-guest'):
            self.changes(self.ended(code))
            with self.assertRaises(exception.HandlerRefused) as failed:
                self.client.write('s', [['a.b', 'x']])
            self.assertEqual(outcomes.of(code), failed.exception.outcome)
            self.assertEqual(f'{code}: {outcomes.message(code)}',
                             str(failed.exception))

    def test_deleting_a_state_never_raises(self):
        self.request.side_effect = ka_exceptions.ConnectFailure('refused')
        self.client.delete_state('s')
        self.answer(403, {'error': {'code': 'forbidden', 'message': 'no'}})
        self.client.delete_state('s')

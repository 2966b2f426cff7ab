# SPDX-License-Identifier: Apache-2.0
"""Several reads in one request, and values that may be old."""

import time
from unittest import mock
import uuid

from clickos_client import limits

from clickos_api import errors
from clickos_api.state import values
from tests.unit.clickos_api import base


class ReadsTest(base.TestCase):
    """The values of one guest."""

    def setUp(self):
        super().setUp()
        self.agent.guests[self.server_id].update(
            {'a.count': '7', 'b.count': '8'})
        self.agent.reads = 0

    def read(self, *names, token=None, **more):
        """Read several handlers; return (status, body)."""
        return self.call('POST', f'/v1/servers/{self.server_id}/reads',
                         token, json={'names': list(names), **more})

    def test_each_name_has_a_value_or_an_error(self):
        self.assertEqual((200, {'values': [
            {'name': 'b.count', 'value': '8'},
            {'name': 'x.y', 'error': {
                'code': 'no-such-handler', 'status': 404,
                'message': 'x.y: no such handler'}},
            {'name': 'a.count', 'value': '7'},
            {'name': 'b.count', 'value': '8'}]}),
            self.read('b.count', 'x.y', 'a.count', 'b.count'))
        self.assertEqual(1, self.agent.reads)

    def test_a_parameter(self):
        self.agent.guests[self.server_id]['r.lookup'] = 'to '
        path = self.handlers('/r.lookup?parameter=192.0.2.1%204000')
        self.assertEqual(
            (200, {'name': 'r.lookup', 'parameter': '192.0.2.1 4000',
                   'value': 'to 192.0.2.1 4000'}), self.call('GET', path))
        self.assertError(
            400, 'handler-error', 'takes no parameter',
            self.call('GET', self.handlers('/a.count?parameter=x')))
        self.assertEqual(
            (200, {'name': 'a.count', 'value': '7'}),
            self.call('GET', self.handlers('/a.count?parameter=')))

    def test_parameters_of_several_reads(self):
        self.agent.guests[self.server_id]['r.lookup'] = ''
        self.assertEqual((200, {'values': [
            {'name': 'r.lookup', 'parameter': '::1', 'value': '::1'},
            {'name': 'a.count', 'value': '7'},
            {'name': 'r.lookup', 'parameter': '::2', 'value': '::2'},
            {'name': 'a.count', 'parameter': 'x', 'error': {
                'code': 'handler-error', 'status': 400, 'message':
                'a.count: the handler takes no parameter, got "x"'}}]}),
            self.read(['r.lookup', '::1'], 'a.count', ['r.lookup', '::2'],
                      ['a.count', 'x']))
        self.assertEqual(1, self.agent.reads)

    def test_answers_for_parameters_are_always_new(self):
        """Each has another answer, and the memory is for values."""
        path = self.handlers('/r.lookup?max_age=60&parameter=')
        for table in ('old ', 'new '):
            self.agent.guests[self.server_id]['r.lookup'] = table
            for address in ('::1', '::2'):
                self.assertEqual(
                    (200, {'name': 'r.lookup', 'parameter': address,
                           'value': table + address, 'age': 0}),
                    self.call('GET', path + address))
        self.assertEqual([(table + '::1', 0)], [
            (each['value'], each['age']) for each in self.read(
                ['r.lookup', '::1'], max_age=60)[1]['values']])
        self.agent.guests[self.server_id]['r.lookup'] = 'whole'
        self.assertEqual('whole', self.read('r.lookup', max_age=60)[1][
            'values'][0]['value'])

    def test_bad_parameters_are_refused(self):
        for parameter, words in (
                ('a' * 256, 'has 256 bytes, the limit is 255'),
                ('%C3%A9' * 128, 'has 256 bytes, the limit is 255'),
                ('a%0Ab', 'control characters'),
                ('a%C2%9Bb', 'control characters'), ('%00', 'NUL')):
            self.assertError(400, 'bad-request', words, self.call(
                'GET', self.handlers(f'/a.count?parameter={parameter}')))
        for entry, words in (
                (['a.count'], 'names[0]: expected HANDLER or [HANDLER'),
                (['a.count', 'b', 'c'], 'names[0]'),
                (['a b', 'c'], 'names[0][0]'), (['a.b', 7], 'names[0][1]'),
                (['a.b', 'x' * 256], 'names[0][1]: has 256 bytes'),
                (['a.b', 'x\x1b'], 'names[0][1]: expected no control'),
                ({'a.b': 'x'}, 'names[0]')):
            self.assertError(400, 'bad-request', words, self.call(
                'POST', f'/v1/servers/{self.server_id}/reads',
                json={'names': [entry]}))
        self.assertEqual(0, self.agent.reads)

    def test_a_vnf(self):
        vnf_id = str(uuid.uuid4())
        self.cloud.add_vnf(vnf_id, self.project_id,
                           [(self.server_id, 'VDU1', 'vnfc-1')])
        self.assertEqual(200, self.call(
            'POST', f'/v1/vnfs/{vnf_id}/reads',
            json={'names': ['a.count']})[0])

    def test_bad_requests_are_refused(self):
        for body, words in (
                ({}, 'names'), ({'names': []}, '1 to 64'),
                ({'names': ['a.b'] * 65}, 'the limit is 64'),
                ({'names': 'a.b'}, '1 to 64'),
                ({'names': [7]}, 'names[0]'),
                ({'names': ['a.b', 'a b']}, 'names[1]'),
                ({'names': ['a.b'], 'max_age': -1}, 'max_age'),
                ({'names': ['a.b'], 'max_age': 61}, '0 to 60'),
                ({'names': ['a.b'], 'max_age': True}, 'max_age'),
                ({'names': ['a.b'], 'max_age': 'nan'}, 'max_age'),
                ({'names': ['a.b'], 'more': 1}, 'more')):
            answer = self.call('POST', f'/v1/servers/{self.server_id}/reads',
                               json=body)
            self.assertError(400, 'bad-request', words, answer)
        self.assertError(400, 'bad-request', 'max_age', self.call(
            'GET', self.handlers('/a.count?max_age=x')))
        self.assertEqual(0, self.agent.reads)

    def test_others_learn_nothing(self):
        stranger = self.caller('other', 'member', 'reader')
        self.read('a.count', max_age=60)
        self.assertEqual(404, self.read('a.count', token=stranger,
                                        max_age=60)[0])
        self.assertEqual(404, self.call('GET', self.handlers(
            '/a.count?max_age=60'), stranger)[0])

    def test_an_old_value_needs_no_guest(self):
        """The age is that of the first read."""
        self.assertEqual((200, {'name': 'a.count', 'value': '7', 'age': 0}),
                         self.call('GET', self.handlers(
                             '/a.count?max_age=60')))
        self.agent.guests[self.server_id]['a.count'] = '9'
        status, body = self.read('a.count', 'b.count', max_age=60)
        self.assertEqual(200, status)
        self.assertEqual(['7', '8'], [
            each['value'] for each in body['values']])
        self.assertGreater(body['values'][0]['age'], 0)
        self.assertEqual(0, body['values'][1]['age'])
        self.assertEqual((200, {'name': 'a.count', 'value': '9'}),
                         self.call('GET', self.handlers('/a.count')))
        self.assertEqual(1, self.agent.reads)   # of b.count
        self.assertEqual(
            '9', self.read('a.count', max_age=0)[1]['values'][0]['value'])

    def test_a_change_ends_old_values(self):
        for change in (lambda: self.put('1', 'a.count'),
                       lambda: self.put('bad', 'a.count'), self.replace):
            self.read('b.count', max_age=60)
            before = self.agent.reads
            change()
            self.read('b.count', max_age=60)
            self.assertEqual(before + 1, self.agent.reads)

    def test_errors_are_not_kept(self):
        self.read('x.y', max_age=60)
        self.agent.guests[self.server_id]['x.y'] = '1'
        self.assertEqual('1', self.read('x.y', max_age=60)[1]['values'][0][
            'value'])

    def test_a_wrong_answer_of_the_agent_is_refused(self):
        for broken in ({'values': []}, {'values': [7]}, {'values': None},
                       {'values': [{'error': 'x'}]}, {'values': [{}]}):
            self.agent.broken = broken
            self.assertIn(self.read('a.count')[0], (200, 502))
            self.assertNotIn("'value':", str(self.read('a.count')[1]))

    def test_reads_are_no_changes_for_the_rate(self):
        self.conf.set_override('writes_per_minute', 1, 'clickos_api')
        self.addCleanup(self.conf.clear_override, 'writes_per_minute',
                        'clickos_api')
        self.app = base.app.create(self.conf)
        self.client = self.app.test_client()
        for _ in range(3):
            self.assertEqual(200, self.read('a.count')[0])


class ValuesTest(base.unittest.TestCase):
    """Values that are kept."""

    def setUp(self):
        super().setUp()
        self.values = values.Values()

    def got(self, *names, server_id='s', max_age_s=60):
        """Return what is kept, without its age."""
        found = self.values.get(server_id, names, max_age_s)
        return {name: value for name, (value, _) in found.items()}

    def test_age_and_server_count(self):
        self.values.keep('s', {'a': '1'}, time.monotonic() - 5)
        self.assertEqual({'a': '1'}, self.got('a', 'b'))
        self.assertEqual({}, self.got('a', max_age_s=4))
        self.assertEqual({}, self.got('a', server_id='t'))
        (_, age_s), = self.values.get('s', ['a'], 60).values()
        self.assertGreaterEqual(age_s, 5)

    def test_a_value_asked_for_before_a_change_counts_no_longer(self):
        """Also one that arrives after it."""
        asked_s = time.monotonic()
        self.values.changed('s')
        self.values.keep('s', {'a': '1'}, asked_s)
        self.assertEqual({}, self.got('a'))

    def test_it_is_bounded(self):
        now_s = time.monotonic()
        with mock.patch.multiple(values, _VALUES=3, _CHARACTERS=10,
                                 _OF_VALUE=6, _GUESTS=2):
            self.values.keep('s', {name: '1' for name in 'abcd'}, now_s)
            self.assertEqual(['b', 'c', 'd'], list(self.got(*'abcd')))
            self.values.keep('s', {'e': '123456', 'f': '1234567'}, now_s)
            self.assertEqual(['c', 'd', 'e'], list(self.got(*'bcdef')))
            self.values.keep('s', {'e': '123', 'g': '123456'}, now_s)
            self.assertEqual(['d', 'e', 'g'], list(self.got(*'cdefg')))
            for name in 'xyz':
                self.values.changed(name)
            self.assertEqual(2, len(self.values._changed_s))
        self.assertEqual(10, self.values._characters)

    def test_what_is_too_old_for_all_is_dropped(self):
        self.values.keep('s', {'a': '1'},
                         time.monotonic() - limits.MAX_AGE_S - 1)
        self.assertEqual({}, dict(self.values._kept))

    def test_errors_have_one_body(self):
        self.assertEqual({'error': {'code': 'busy', 'message': 'm'}},
                         errors.body(errors.Unavailable('m', code='busy')))

# SPDX-License-Identifier: Apache-2.0
"""Hostile requests, each refused by name."""

from clickos_client import limits

from tests.unit.clickos_api import base


class ValidationTest(base.TestCase):
    """Every refusal is a 400 that names the place and records nothing."""

    def tearDown(self):
        self.assertEqual({'fw.config': 'deny all'},
                         self.agent.guests[self.server_id])
        self.assertEqual(0, self.state()['revision'])
        super().tearDown()

    def assertRefused(self, words, answer):
        self.assertError(400, 'bad-request', words, answer)

    def put_raw(self, body):
        return self.call('PUT', self.handlers('/fw.config'), data=body)

    def post(self, writes):
        return self.call('POST', self.handlers(), json={'writes': writes})

    def test_server_id(self):
        for bad in ('x', '..', self.server_id + '0', '%00',
                    self.server_id.replace('-', '')):
            self.assertRefused('server id: expected a UUID', self.call(
                'GET', f'/v1/servers/{bad}/handlers'))

    def test_vnfc(self):
        path = self.handlers().replace('servers', 'vnfs')
        self.assertRefused('vnfc: longer', self.call(
            'GET', path + '?vnfc=' + 'v' * 256))

    def test_handler_name(self):
        for bad in ('fw.con fig', 'fw..config', 'fw.',
                    '%C3%BC.config', 'fw.config;', '-.x'):
            self.assertRefused('handler: expected ELEMENT.HANDLER', self.call(
                'GET', self.handlers('/' + bad)))
        self.assertRefused('handler: longer than 255', self.call(
            'GET', self.handlers('/' + 'e' * 254 + '.h')))

    def test_body(self):
        for body, words in (
                (b'', 'body: not JSON: line 1 column 1'),
                (b'{"value": ', 'body: not JSON: line 1 column 11'),
                (b'\xff', 'body: not UTF-8 at byte 0'),
                (b'[' * 16000, 'nested too deep'),
                (b'{"value":' + b'9' * 5000 + b'}', 'number too long'),
                (b'[]', 'expected an object with "value"'),
                (b'{}', '"value" is missing'),
                (b'{"value": "x", "evil": 1}', "unknown key 'evil'"),
                (b'{"value": 5}', 'value: expected a text, got 5'),
                (b'{"value": null}', 'value: expected a text, got None'),
                (b'{"value": "\\ud800"}', 'half a surrogate pair'),
                (b'{"value": "a\\u0000b"}', 'value: holds a NUL')):
            self.assertRefused(words, self.put_raw(body))

    def test_many_values(self):
        """They would take 30 times the bytes of the body."""
        for piece in (b'[]', b'{}', b'""', b'1', b'"a":[{}]'):
            body = b'{"value": [' + b','.join([piece] * 20000) + b']}'
            self.assertRefused('body: more than 16384', self.put_raw(body))

    def test_signs_of_json_in_a_value(self):
        """A configuration has many of them."""
        for value in ('[{,:' * 10000, '"[' * 10000, '\\",' * 10000):
            self.assertRefused("unknown key 'evil'", self.call(
                'POST', '/v1/states', json={'config': value, 'evil': 1}))

    def test_the_longest_body(self):
        writes = [['a' * 250 + f'.{n}', '[]' * 16]
                  for n in range(limits.WRITES)]
        self.assertRefused("unknown key 'evil'", self.call(
            'PUT', '/v1/states/' + self.server_id, json={
                'config': 'Idle;', 'writes': writes, 'evil': [],
                'keep': [name for name, _value in writes]}))

    def test_value_size_counts_bytes(self):
        self.assertRefused('value: has 1002 bytes, the limit is 1000',
                           self.put('\u00fc' * 501))

    def test_body_size(self):
        status, body = self.put_raw(b' ' * 7000000)
        self.assertEqual((413, 'request-entity-too-large'),
                         (status, body['error']['code']))

    def test_writes(self):
        for writes, words in (
                ([], 'writes: expected a list of at least one'),
                ('x', 'writes: expected a list'),
                ([['a.b', 'c']] * 5, 'writes: has 5 entries, the limit is 4'),
                ([['a.b', 'c'], 7], 'writes[1]: expected [HANDLER, VALUE]'),
                ([['a.b']], 'writes[0]: expected'),
                ([['a b', 'c']], 'writes[0][0]: expected ELEMENT.HANDLER'),
                ([['a.b\n', 'c']], 'writes[0][0]: expected ELEMENT.HANDLER'),
                ([[{}, 'c']], 'writes[0][0]: expected ELEMENT.HANDLER'),
                ([['a.b', ['c']]], 'writes[0][1]: expected a text')):
            self.assertRefused(words, self.post(writes))


class StateSizeTest(base.TestCase):
    """Desired state is bounded; what fits stays."""

    def test_bytes(self):
        self.assertEqual(200, self.put('a' * 900, 'a.x')[0])
        self.assertError(413, 'too-large', 'the limit is 1500',
                         self.put('b' * 900, 'b.x'))
        self.assertNotIn('b.x', self.agent.guests[self.server_id])
        self.assertEqual(200, self.put('c' * 900, 'a.x')[0])
        self.assertEqual(2, self.state()['revision'])

    def test_handlers(self):
        for name in 'abcd':
            self.assertEqual(200, self.put('1', f'{name}.x')[0])
        self.assertError(413, 'too-large', 'name 5 handlers',
                         self.put('1', 'e.x'))
        self.assertEqual(4, self.state()['revision'])

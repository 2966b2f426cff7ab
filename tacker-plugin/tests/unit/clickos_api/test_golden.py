# SPDX-License-Identifier: Apache-2.0
"""Golden refusals: the service's words for bad bodies, one by one.

``interfaces/golden/http.jsonl`` has the requests and their refusals. With
``UPDATE_GOLDEN=1`` the test makes them again from the good bodies below.
"""

import copy
import json
import os
import pathlib

from tests.unit.clickos_api import base

_FILE = pathlib.Path(__file__).parents[4] / 'interfaces/golden/http.jsonl'
_ID = '11111111-2222-4333-8444-555555555555'
_GUEST = f'/v1/servers/{_ID}'
_PAIRS = [['fw.config', 'deny all'], ['fw.log', 'on']]
_HOPS = [{'name': name, 'server': _ID.replace('1', name),
          'group': _ID.replace('1', name)} for name in ('a', 'b')]
GOOD = (
    ('PUT', f'{_GUEST}/handlers/fw.config', {'value': 'x'}),
    ('POST', f'{_GUEST}/handlers', {'writes': _PAIRS}),
    ('POST', f'{_GUEST}/reads', {
        'names': ['a.b', ['r.lookup', '192.0.2.1']], 'max_age': 3}),
    ('POST', f'{_GUEST}/flows', {'to': [_ID]}),
    ('PUT', f'{_GUEST}/configuration', {
        'config': 'Idle;', 'config_name': 'fw.click'}),
    ('POST', f'{_GUEST}/desired-state', {'revision': 1}),
    ('POST', '/v1/states', {
        'config': 'Idle;', 'config_name': 'fw.click', 'writes': _PAIRS}),
    ('PUT', f'/v1/states/{_ID}', {
        'config': 'Idle;', 'writes': _PAIRS, 'keep': ['fw.log']}),
    ('POST', f'/v1/states/{_ID}/starts', {
        'number': 1, 'revision': 1, 'incarnation': _ID, 'server_id': _ID,
        'project_id': 'p'}),
    ('POST', '/v1/secrets', {'name': 'key', 'value': 'hidden'}),
    ('PUT', f'/v1/ports/{_ID}/roles', {'roles': ['dhcp-server']}),
    ('PUT', f'/v1/chains/{_ID}/fusion', {'server': _ID, 'hops': _HOPS}),
)
_OTHERS = (None, True, 7, -1, 1.5, 2 ** 60, '', 'x y', 'a.b\n', 'a\0b',
           '\ud800', 'e' * 256 + '.h', 'é' * 501, [], ['x'], {}, {'a': 1})


def _mutations(value):
    """Yield a value with one fault each."""
    yield from _OTHERS
    if isinstance(value, dict):
        yield {**value, 'evil': 1}
        for key in value:
            yield {name: each for name, each in value.items() if name != key}
            for other in _mutations(value[key]):
                yield {**value, key: other}
    if isinstance(value, list) and value:
        yield value * 33
        yield [*value, *value, *value]
        yield value[:-1]
        for index, each in enumerate(value):
            for other in _mutations(each):
                changed = copy.copy(value)
                changed[index] = other
                yield changed


class GoldenTest(base.TestCase):
    """As a member; no guest has the id."""

    def setUp(self):
        super().setUp()
        for name in ('requests_per_minute', 'writes_per_minute'):
            self.conf.set_override(name, 0, 'clickos_api')
            self.addCleanup(self.conf.clear_override, name, 'clickos_api')
        self.client = base.app.create(self.conf).test_client()

    def test_refusals_have_the_golden_words(self):
        if 'UPDATE_GOLDEN' in os.environ:
            _FILE.write_text(''.join(
                json.dumps(line, sort_keys=True) + '\n'
                for line in self.made()))
        lines = [json.loads(line) for line in _FILE.read_text().splitlines()]
        self.assertGreater(len(lines), 100)
        for line in lines:
            with self.subTest(line=line):
                self.assertEqual(line['outcome'], self.outcome(
                    line['method'], line['path'], line['body']))

    def made(self):
        """Yield the refusals of mutated bodies that differ in their words."""
        for method, path, good in GOOD:
            self.assertEqual('accepted', self.outcome(method, path, good))
            known = {}
            for body in _mutations(good):
                outcome = self.outcome(method, path, body)
                if len(json.dumps(body)) < 3000 and outcome != 'accepted':
                    rule = outcome.partition(', got ')[0]
                    known.setdefault(rule, (body, outcome))
            for body, outcome in known.values():
                yield {'method': method, 'path': path, 'body': body,
                       'outcome': outcome}

    def outcome(self, method, path, body):
        """Return the refusal of a body."""
        status, answer = self.call(method, path, data=json.dumps(body))
        return (answer['error']['message'] if status == 400 else 'accepted')

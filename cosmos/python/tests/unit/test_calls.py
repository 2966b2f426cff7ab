# SPDX-License-Identifier: Apache-2.0
"""Each call of a daemon in our Python code fits the contract."""

import ast
import json
import pathlib
import unittest

_ROOT = pathlib.Path(__file__).parents[4]
_FOLDERS = ('cosmos/python', 'devstack/lab', 'nova-driver', 'tacker-plugin',
            'tempest-tests', 'vale')
_CONTRACT = json.loads(
    (_ROOT / 'interfaces/clickos_client/contract.json').read_text())
_DAEMONS = (_CONTRACT['cosmosd'], _CONTRACT['valed'])
#: The tests of the client send what no daemon takes.
_NO_CALLS = ('cosmos/python/tests',)


def _calls():
    """Yield (place, verb, keys, has all its keys) of each call by a name."""
    for folder in _FOLDERS:
        for path in sorted((_ROOT / folder).rglob('*.py')):
            name = str(path.relative_to(_ROOT))
            if not name.startswith(_NO_CALLS):
                yield from _of(name, ast.parse(path.read_text()))


def _of(name, tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _is_call(node.func) \
                and len(node.args) == 1 \
                and isinstance(node.args[0], ast.Constant):
            keys = [keyword.arg for keyword in node.keywords]
            yield (f'{name}:{node.lineno}', node.args[0].value,
                   {key for key in keys if key}, None not in keys)


def _is_call(function):
    """:returns: whether it is a client's ``call``; ``mock.call`` is not one"""
    return isinstance(function, ast.Attribute) and function.attr == 'call' \
        and getattr(function.value, 'id', None) != 'mock'


def fault(verbs, verb, keys, is_whole):
    """Return why a daemon would refuse a call, None if it would not."""
    if verb not in verbs:
        return f'no verb {verb!r}'
    args = _CONTRACT['$defs'][verbs[verb]['args']['$ref'].split('/')[-1]]
    unknown = keys - args.get('properties', {}).keys()
    missing = set(args.get('required', ())) - keys if is_whole else ()
    if unknown or missing:
        return f'{verb}: unknown {sorted(unknown)}, missing {sorted(missing)}'
    return None


class CallsTest(unittest.TestCase):
    def test_each_call_fits_a_daemon(self):
        # Methods of RPC have underscores in place of hyphens.
        calls = [call for call in _calls() if '_' not in str(call[1])]
        self.assertGreater(len(calls), 60)
        for place, *call in calls:
            faults = [fault(verbs, *call) for verbs in _DAEMONS]
            self.assertIn(None, faults, place)

    def test_a_call_that_does_not_fit_is_found(self):
        verbs = _CONTRACT['cosmosd']
        for verb, keys in (('destroyed', {'uuid'}), ('destroy', set()),
                           ('destroy', {'uuid', 'force'})):
            self.assertIsNotNone(fault(verbs, verb, keys, True))
        self.assertIsNone(fault(verbs, 'destroy', {'uuid'}, True))

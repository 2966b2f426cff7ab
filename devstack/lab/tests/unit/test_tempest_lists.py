# SPDX-License-Identifier: Apache-2.0
"""The lists of Tempest's own tests: each line means something."""

import collections
import pathlib
import re
import unittest

from clickos_lab import paths

_LISTS = paths.REPO / 'tempest-tests/lists'


def _lines(name):
    text = (_LISTS / f'compute-{name}.txt').read_text()
    return [line for line in text.splitlines()
            if line and not line.startswith('#')]


def _tests():
    """Return module.Class.test of Tempest, as far as the source tells."""
    import tempest.api
    top = pathlib.Path(tempest.api.__path__[0])
    found = set()
    for path in top.glob('*/**/test_*.py'):
        module = '.'.join(('tempest.api', *path.relative_to(
            top).with_suffix('').parts))
        name = None
        for line in path.read_text().splitlines():
            if begun := re.match(r'class (\w+)', line):
                name = begun[1]
            elif test := re.match(r'    def (test_\w+)', line):
                found.add(f'{module}.{name}.{test[1]}')
    return found


class ListsTest(unittest.TestCase):

    def test_each_excluded_test_has_a_reason_and_is_there(self):
        tests = _tests()
        for line in _lines('excluded'):
            pattern, _, reason = line.partition('#')
            self.assertGreater(len(reason.split()), 3, line)
            self.assertTrue(any(re.search(pattern.strip(), test)
                                for test in tests), line)


class IdsTest(unittest.TestCase):

    def test_no_two_of_our_tests_have_one_id(self):
        folder = paths.REPO / 'tempest-tests/clickos_tempest_plugin'
        found = collections.Counter(
            each for path in folder.rglob('test_*.py') for each in
            re.findall(r"idempotent_id\('([^']+)'\)", path.read_text()))
        self.assertGreater(len(found), 50)
        self.assertEqual([], [each for each, n in found.items() if n > 1])

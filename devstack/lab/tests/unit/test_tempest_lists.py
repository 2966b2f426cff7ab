# SPDX-License-Identifier: Apache-2.0
"""The lists of Tempest's own tests: each line means something."""

import collections
import pathlib
import re
import unittest

from clickos_lab.config import options
from clickos_lab import paths

_LISTS = paths.REPO / 'tempest-tests/lists'
#: Takes a service or a host away from other tests.
_STOPS = r'\.(restart|outage|read_only|add_host|force_down)\('
_PLUGIN = paths.REPO / 'tempest-tests/clickos_tempest_plugin'


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


class FlagsTest(unittest.TestCase):
    """Flags that leave tests of Tempest out."""

    #: Those of tests that another row of the page explains.
    BY_OTHERS = {
        'attach_encrypted_volume': 'service_available.cinder',
        'swap_volume': 'service_available.cinder',
        'volume_backed_live_migration': 'service_available.cinder',
        'volume_multiattach': 'service_available.cinder'}

    def test_each_flag_that_is_off_has_a_reason_in_the_page(self):
        page = (paths.REPO / 'docs/operator/tempest.md').read_text()
        explained = {}
        for row in re.findall(r'^\| .* \|$', page, re.MULTILINE):
            _tests, flags, reason = row.strip('| ').split(' | ')
            for flag in re.findall(r'`([\w.]+)`', flags):
                explained[flag] = reason
        flags = options.of('tempest-compute')['compute-feature-enabled']
        for key, value in flags.items():
            if value == 'False':
                flag = self.BY_OTHERS.get(key, key)
                self.assertGreater(len(explained[flag].split()), 2, key)

    def test_the_flags_are_options_of_tempest(self):
        from tempest import config
        groups = {group.name: options for group, options
                  in config._opts if group}
        for section, found in options.of('tempest-compute').items():
            known = {option.name for option in groups[section]}
            self.assertEqual(set(), found.keys() - known, section)


class MarksTest(unittest.TestCase):
    """Our tests that run in ``make test``, and those that run alone."""

    def setUp(self):
        super().setUp()
        self.tests = _PLUGIN / 'tests'

    def test_a_few_tests_are_those_of_make_test(self):
        marked = [match for path in self.tests.rglob('test_*.py')
                  for match in re.findall(
                      r"attr\(type=.*'gate'.*\)\n(?: +@.*\n)*"
                      r' +def (test_\w+)', path.read_text())]
        self.assertGreater(len(marked), 20)
        self.assertLess(len(marked), 42)

    def test_what_stops_services_runs_alone(self):
        for path in self.tests.rglob('test_*.py'):
            # Only one class has guests on the Xen host.
            if path.parent.name != 'serial' and '_on_xen' not in path.name:
                self.assertNotRegex(path.read_text(), _STOPS, path)

    def test_classes_of_the_serial_folder_are_marked(self):
        texts = [path.read_text() for path in
                 (self.tests / 'serial').glob('test_*.py')]
        self.assertGreater(len(texts), 3)
        for text in texts:
            cases = re.findall(r'((?:^@.*\n)*)^class (\w+)\((.*)\)', text,
                               re.MULTILINE)
            marked = {name for marks, name, _ in cases
                      if 'decorators.serial' in marks}
            for _marks, name, bases in cases:
                self.assertTrue(marked & {name, *bases.split(', ')}, name)


class IdsTest(unittest.TestCase):

    def test_no_two_of_our_tests_have_one_id(self):
        found = collections.Counter(
            each for path in _PLUGIN.rglob('test_*.py') for each in
            re.findall(r"idempotent_id\('([^']+)'\)", path.read_text()))
        self.assertGreater(len(found), 50)
        self.assertEqual([], [each for each, n in found.items() if n > 1])

# SPDX-License-Identifier: Apache-2.0
"""The bounds of setup.cfg, the pins of each release, and who tries them."""

import configparser
import re
import unittest

from packaging import requirements
from packaging import utils

from clickos_lab import openstack
from clickos_lab import paths

_PINS = openstack.PINS


def _file(name):
    parser = configparser.ConfigParser(interpolation=None)
    parser.read(paths.REPO / name)
    return parser


def _wanted():
    """Yield each requirement of setup.cfg."""
    found = _file('setup.cfg')
    for text in (found['options']['install_requires'],
                 *found['options.extras_require'].values()):
        for line in text.strip().splitlines():
            yield requirements.Requirement(line)


def _pinned(file):
    """Return the version of each package that a file pins."""
    lines = file.read_text().splitlines()
    found = (re.match(r'([\w.-]+)(?:\[.*\])?==([^\s;]+)', line)
             for line in lines)
    return {utils.canonicalize_name(match[1]): match[2]
            for match in found if match}


class BoundsTest(unittest.TestCase):

    def test_each_release_has_versions_within_the_bounds(self):
        for release, file in _PINS.items():
            pins = _pinned(file)
            for wanted in _wanted():
                with self.subTest(f'{wanted} on {release}'):
                    pin = pins[utils.canonicalize_name(wanted.name)]
                    self.assertTrue(wanted.specifier.contains(pin), pin)

    def test_each_requirement_has_a_lower_bound(self):
        for wanted in _wanted():
            self.assertEqual(
                ['>='], [each.operator for each in wanted.specifier], wanted)

    def test_the_bounds_of_services_are_the_oldest_release(self):
        pins = _pinned(_PINS['2026.1'])
        for name in ('nova', 'neutron', 'tacker', 'tempest'):
            wanted, = (each for each in _wanted() if each.name == name)
            bound, = wanted.specifier
            self.assertEqual(pins[name].partition('.')[0],
                             bound.version.partition('.')[0], name)


class PythonTest(unittest.TestCase):

    def test_tox_tries_each_python_that_is_named(self):
        named = set(re.findall(r'Python :: (3\.\d+)$',
                               _file('setup.cfg')['metadata']['classifier'],
                               re.MULTILINE))
        tried = _file('tox.ini')['tox']['envlist'].split(',')
        self.assertEqual(named, {
            f'3.{found[1]}' for found in
            (re.fullmatch(r'py3(\d+)', each) for each in tried) if found})
        self.assertIn('py311-2026.1', tried)

    def test_tox_runs_the_unit_tests_of_each_part(self):
        commands = _file('tox.ini')['testenv']['commands']
        run = set(re.findall(r'--test-path (\S+/tests/unit) ', commands))
        found = {file.parent.relative_to(paths.REPO)
                 for above in ('[a-z]*', '[a-z]*/[a-z]*') for file
                 in paths.REPO.glob(f'{above}/tests/unit/__init__.py')}
        self.assertEqual(set(map(str, found)), run)


if __name__ == '__main__':
    unittest.main()

# SPDX-License-Identifier: Apache-2.0
"""setup.cfg names every package, and what it promises can be loaded."""

import configparser
import importlib.metadata
import pathlib
import subprocess
import sys
import unittest

from clickos_lab import bounds
from clickos_lab import paths
from clickos_lab import venv
from clickos_tempest_plugin import config as tempest_config

#: Loads the entry points of a distribution that are of a package.
_LOAD = """
import importlib.metadata, sys
name, package = sys.argv[1:]
for point in importlib.metadata.distribution(name).entry_points:
    if point.module.partition('.')[0] == package:
        assert point.load() is not None, point
"""


class DistributionTest(unittest.TestCase):

    def setUp(self):
        super().setUp()
        parser = configparser.ConfigParser(interpolation=None)
        parser.read(paths.REPO / 'setup.cfg')
        self.options = parser['options']

    def test_every_package_is_listed(self):
        found = set()
        for line in self.options['package_dir'].split('\n')[1:]:
            package, _, folder = line.partition(' = ')
            root = paths.REPO / folder
            for init in root.rglob('__init__.py'):
                below = init.parent.relative_to(root).parts
                found.add('.'.join([package, *below]))
        self.assertEqual(found, set(self.options['packages'].split()))

    def test_every_entry_point_loads(self):
        """Each package has a process: Neutron's options exclude Nova's."""
        distribution = importlib.metadata.distribution(venv.DISTRIBUTION)
        self.assertTrue(distribution.entry_points)
        packages = {entry_point.module.partition('.')[0]
                    for entry_point in distribution.entry_points}
        for package in packages:
            with self.subTest(package):
                done = subprocess.run(
                    [sys.executable, '-c', _LOAD, venv.DISTRIBUTION, package],
                    capture_output=True, text=True)
                self.assertEqual(0, done.returncode, done.stderr[-2000:])

    def test_nova_finds_the_driver(self):
        files = {str(f) for f in importlib.metadata.files(venv.DISTRIBUTION)}
        self.assertIn('nova/virt/clickos/driver.py', files)
        self.assertNotIn('nova/__init__.py', files)

    def test_the_tempest_plugin_finds_its_bounds(self):
        option, = (each for each in tempest_config.clickos_opts
                   if each.name == 'bounds_path')
        self.assertEqual(bounds.FILE.read_text(),
                         pathlib.Path(option.default).read_text())

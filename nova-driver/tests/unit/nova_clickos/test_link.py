# SPDX-License-Identifier: Apache-2.0
"""A Nova of a distribution's packages, and the wheel in another folder."""

import os
import pathlib
import shutil
import subprocess
import sys

import fixtures
import testtools

from nova_clickos import link

_NOVA = pathlib.Path(__file__).parents[3] / 'nova'


class LinkTest(testtools.TestCase):

    def setUp(self):
        super().setUp()
        root = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.local, self.system = root / 'local', root / 'system'
        shutil.copytree(_NOVA, self.local / 'nova')
        virt = self.system / 'nova/virt'
        virt.mkdir(parents=True)
        for folder in virt.parent, virt:
            (folder / '__init__.py').write_text('')
        self.link = virt / 'clickos'
        self.useFixture(fixtures.MockPatchObject(link, '_PLACE', self.local))
        self.path = [str(self.local), str(self.system)]

    def is_found(self):
        """Return whether a Python finds what Nova would load."""
        done = subprocess.run(
            [sys.executable, '-S', '-c',
             'from importlib.util import find_spec\n'
             'find_spec("nova.virt.clickos.driver").origin'],
            env={**os.environ, 'PYTHONPATH': ':'.join(self.path)},
            stderr=subprocess.DEVNULL, check=False)
        return done.returncode == 0

    def test_python_finds_the_driver_with_the_link_only(self):
        self.assertFalse(self.is_found())
        self.assertIn('links to', link.make(self.path))
        self.assertTrue(self.is_found())
        self.assertIn('finds the driver', link.make(self.path))
        self.assertIn('no link', link.remove(self.path))
        link.remove(self.path)
        self.assertFalse(self.is_found())

    def test_a_link_to_an_older_place_is_replaced(self):
        self.link.symlink_to('/nonexistent/clickos')
        link.make(self.path)
        self.assertTrue(self.is_found())

    def test_a_folder_of_that_name_stays(self):
        self.link.mkdir()
        for work in link.make, link.remove:
            error = self.assertRaises(link.LinkError, work, self.path)
            self.assertIn('is not a link', str(error))
        self.assertTrue(self.link.is_dir())

    def test_a_wheel_beside_its_nova_needs_no_link(self):
        shutil.copytree(self.local / 'nova/virt/clickos', self.link)
        self.useFixture(fixtures.MockPatchObject(link, '_PLACE', self.system))
        self.assertIn('finds the driver', link.make([str(self.system)]))
        self.assertFalse(self.link.is_symlink())

    def test_without_nova_or_wheel_the_error_says_so(self):
        error = self.assertRaises(link.LinkError, link.make,
                                  [str(self.local)])
        self.assertIn('not installed', str(error))
        shutil.rmtree(self.local)
        error = self.assertRaises(link.LinkError, link.make, self.path)
        self.assertIn('install the wheel', str(error))

    def test_only_the_driver_of_this_installation_is_linked(self):
        """Another one may lie where root calls the program."""
        other = self.local.parent / 'other'
        shutil.copytree(self.local / 'nova', other / 'nova')
        self.useFixture(fixtures.MockPatchObject(
            sys, 'path', [str(other), str(self.system), *sys.path]))
        link.make()
        self.assertEqual(self.local / 'nova/virt/clickos',
                         self.link.resolve())
        shutil.rmtree(self.local)
        self.assertRaises(link.LinkError, link.make)

# SPDX-License-Identifier: Apache-2.0
"""openstack clickos vnf new."""

import argparse
import io
import pathlib
import re
import tempfile
import types
import zipfile

from osc_lib import exceptions
from tacker_clickos.package import review
from tacker_clickos.vnfd import loader

from clickos_osc.v1 import new_vnf
from tests.unit.tacker_clickos import base


class NewVnfTest(base.TestCase):

    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def new(self, *arguments):
        """Run the command; return what it wrote."""
        app = types.SimpleNamespace(stdout=io.StringIO(), client_manager=None)
        command = new_vnf.NewVnf(app, argparse.Namespace())
        parsed = command.get_parser('openstack').parse_args(
            ['--dir', str(self.folder), *arguments])
        command.take_action(parsed)
        return app.stdout.getvalue()

    def refused(self, words, *arguments):
        with self.assertRaisesRegex(exceptions.CommandError, words):
            self.new(*arguments)

    def test_the_package_passes_the_review(self):
        shown = self.new('my-shaper', '--image', 'clickos-xen')
        package = self.folder / 'my-shaper.csar'
        self.assertIn(f'{package}: the package', shown)
        self.assertEqual([], review.faults(package.read_bytes()))
        with zipfile.ZipFile(package) as csar:
            names = csar.namelist()
        self.assertEqual('TOSCA-Metadata/TOSCA.meta', names[0])
        self.assertNotIn('README.md', names)

    def test_the_descriptor(self):
        self.new('my-shaper', '--image', 'clickos-xen')
        flavour = loader.load(str(self.folder / 'my-shaper'), 'simple')
        vdu = flavour.vdus['VDU1']
        self.assertEqual('clickos-xen', vdu.image)
        self.assertIn('Shaper', vdu.configuration.text)
        for path in (self.folder / 'my-shaper').rglob('*'):
            self.assertIsNone(path.is_file() and re.search(
                '@[A-Z]+@', path.read_text()) or None, path)

    def test_ids_differ(self):
        ids = set()
        for name in 'ab':
            self.new(name)
            text = (self.folder / name / f'Definitions/{name}.yaml'
                    ).read_text()
            ids.add(re.search('descriptor_id: (.*)', text)[1])
        self.assertEqual(2, len(ids))

    def test_nothing_is_overwritten(self):
        self.new('fw')
        self.refused('fw: File exists', 'fw')
        (self.folder / 'nat.csar').write_text('mine')
        self.refused('nat.csar: File exists', 'nat')

    def test_bad_names(self):
        for name in ('', 'A', '../x', 'a--b', '-a', 'a' * 33, 'a.b', '1a'):
            self.refused('lower-case', '--', name)
        self.refused('--image', 'a', '--image', 'a b')

# SPDX-License-Identifier: Apache-2.0
"""The operator's catalog of packages."""

import io
import os
import pathlib
import random
import tempfile
import unittest
from unittest import mock
import zipfile

from clickos_client import catalog
from clickos_client import descriptor_reader

_DESCRIPTOR = """tosca_definitions_version: tosca_simple_yaml_1_2
topology_template:
  node_templates:
    VNF:
      properties:
        descriptor_id: 5f1e8c1e-0c15-4a4e-9b55-f12e3a110007
        product_name: Fw
"""


def package(**more):
    """Return a CSAR, with more files by name."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, 'w', zipfile.ZIP_DEFLATED) as target:
        target.writestr('fw.yaml', _DESCRIPTOR)
        for name, text in more.items():
            target.writestr(name, text)
    return packed.getvalue()


class FreshIdTest(unittest.TestCase):

    def test_a_package_gets_an_id_of_its_own(self):
        csar = package(other='text')
        fresh = catalog.with_fresh_id(csar)
        self.assertNotEqual(descriptor_reader.vnfd_id(csar),
                            descriptor_reader.vnfd_id(fresh))
        self.assertEqual(('Fw', '', ''), descriptor_reader.product(fresh))

    def test_a_damaged_package_is_an_error_of_the_catalog(self):
        csar, choose = package(other='text ' * 50), random.Random(7)
        refused = 0
        for _ in range(2000):
            damaged = bytearray(csar)
            for _ in range(choose.choice((1, 2, 5))):
                damaged[choose.randrange(len(csar))] = choose.randrange(256)
            try:
                catalog.with_fresh_id(bytes(damaged))
            except catalog.CatalogError:
                refused += 1
        self.assertGreater(refused, 1000)

    def test_a_package_that_grows_is_refused(self):
        limit = descriptor_reader.MAX_UNPACKED
        with self.assertRaisesRegex(catalog.CatalogError, f'limit is {limit}'):
            catalog.with_fresh_id(package(other='0' * limit))


class DescriptorTest(unittest.TestCase):

    def test_a_package_of_many_vdus_is_refused(self):
        """Each of them may name a configuration of 256 KiB."""
        vdus = ''.join(f'    V{number}: {{type: tosca.nodes.nfv.Vdu.Compute}}'
                       '\n' for number in range(257))
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, 'w') as target:
            target.writestr('fw.yaml', _DESCRIPTOR + vdus)
        with self.assertRaisesRegex(descriptor_reader.Damaged,
                                    '257 VDUs, the limit is 256'):
            descriptor_reader.read(packed.getvalue())


class FolderTest(unittest.TestCase):

    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.csar = package()
        (self.folder / 'fw.csar').write_bytes(self.csar)

    def test_what_is_no_file_hides_no_package(self):
        (self.folder / 'gone.csar').symlink_to('nowhere')
        (self.folder / 'folder.csar').mkdir()
        os.mkfifo(self.folder / 'pipe.csar')
        self.assertEqual(['fw'], [
            each.id for each in catalog.entries(self.folder)])
        for name in ('gone', 'folder', 'pipe', '../fw', 'fw.csar', ''):
            with self.assertRaisesRegex(catalog.CatalogError, 'no such'):
                catalog.content(self.folder, name)

    def test_the_reason_of_a_lost_file_has_no_folder(self):
        with mock.patch.object(catalog, '_bytes', autospec=True,
                               side_effect=PermissionError(
                                   13, 'Permission denied', '/srv/fw.csar')):
            (entry,) = catalog.entries(self.folder)
        self.assertEqual('fw.csar: Permission denied', entry.text)

    def test_a_package_is_given_out(self):
        self.assertEqual(self.csar, catalog.content(self.folder, 'fw'))

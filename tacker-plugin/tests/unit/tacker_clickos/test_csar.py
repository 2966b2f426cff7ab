# SPDX-License-Identifier: Apache-2.0
"""The package builder, and what Tacker's own reader says of its packages."""

import io
import logging
import os
import pathlib
import shutil
import tempfile
from unittest import mock
import uuid
import zipfile

from oslo_config import cfg
from tacker.common import csar_utils
from tacker.common import exceptions
import tacker.conf
import yaml

from tacker_clickos import mgmt_driver
from tacker_clickos.vnfd import loader
from tests.unit.tacker_clickos import base

build_csar = base.build_csar()


class CsarTest(base.TestCase):

    def setUp(self):
        super().setUp()
        self.work = pathlib.Path(tempfile.mkdtemp(prefix='clickos-csar-'))
        self.addCleanup(shutil.rmtree, self.work)
        tacker.conf.CONF.import_opt('vnf_package_csar_path',
                                    'tacker.conf.vnf_package', 'vnf_package')
        cfg.CONF.set_override('vnf_package_csar_path',
                              str(self.work) + '/', 'vnf_package')
        self.addCleanup(cfg.CONF.clear_override, 'vnf_package_csar_path',
                        'vnf_package')
        # tosca-parser leaves each package it unpacked behind.
        patcher = mock.patch.object(tempfile, 'tempdir', str(self.work))
        self.addCleanup(patcher.stop)
        patcher.start()
        logging.disable(logging.CRITICAL)    # Tacker misformats one message
        self.addCleanup(logging.disable, logging.NOTSET)

    def build(self, *options):
        path = self.work / 'package.csar'
        build_csar.main(['firewall', str(path)] + list(options))
        return path

    def onboard(self, path):
        return csar_utils.load_csar_data(None, 'p1', str(path))

    def test_an_old_click_check_of_the_path_is_not_used(self):
        plain = self.build().read_bytes()
        program = self.work / 'click-check'
        program.write_text('#!/bin/sh\n[ "$1" = --help ] || exit 1\n')
        program.chmod(0o700)
        with mock.patch.dict(os.environ, {'PATH': f'{self.work}:/bin'}):
            self.assertEqual(plain, self.build().read_bytes())

    def test_same_bytes_every_time(self):
        first = self.build().read_bytes()
        self.assertEqual(first, self.build().read_bytes())
        given = str(uuid.UUID(int=7))
        self.assertEqual(self.build('--vnfd-id', given).read_bytes(),
                         self.build('--vnfd-id', given).read_bytes())

    def test_the_same_vnf_of_another_image(self):
        path = self.build('--image', 'clickos-xen')
        self.onboard(path)
        with zipfile.ZipFile(path) as csar:
            vnfd = yaml.safe_load(csar.read('Definitions/firewall.yaml'))
        vdu = vnfd['topology_template']['node_templates']['VDU1']
        self.assertEqual('clickos-xen',
                         vdu['properties']['sw_image_data']['name'])
        with self.assertRaises(SystemExit):
            self.build('--image', 'x\ninputs: {}')

    def test_wrong_arguments_are_named(self):
        def refusal(*arguments):
            with mock.patch('sys.stderr', io.StringIO()) as text, \
                    self.assertRaises(SystemExit) as end:
                build_csar.main([str(a) for a in arguments])
            return f'{text.getvalue()}{end.exception.code}'
        csar = self.work / 'x.csar'
        self.assertRegex(refusal('nat-of-mine', csar),
                         "'nat-of-mine': no such folder.*, firewall, ")
        self.assertIn("'7': expected a UUID",
                      refusal('nat', csar, '--vnfd-id', '7'))
        self.assertEqual('/nowhere/click-check: No such file or directory',
                         refusal('nat', csar, '--click-check',
                                 '/nowhere/click-check'))
        self.assertEqual(f'{self.work}: Is a directory',
                         refusal('nat', self.work))

    def test_it_names_the_groups_of_elements(self):
        checker = self.work / 'click-check'
        checker.write_text('#!/bin/sh\ngrep -q IPFilter || exit 1\n'
                           'echo ip IPFilter\necho standard Null\n')
        checker.chmod(0o755)
        path = self.build('--click-check', str(checker))
        self.onboard(path)
        flavour = loader.load(self.extract(path), 'simple')
        self.assertEqual({'ip': 'IPFilter', 'standard': 'Null'},
                         flavour.vdus['VDU1'].configuration.groups)
        checker.write_text("#!/bin/sh\necho '<stdin>:1:2: wrong' >&2; exit 1")
        with self.assertRaisesRegex(SystemExit,
                                    'Files/firewall.click:1:2: wrong'):
            self.build('--click-check', str(checker))

    def extract(self, path):
        with zipfile.ZipFile(path) as csar:
            csar.extractall(self.work / 'extracted')
        return self.work / 'extracted'

    def test_a_fresh_id_is_a_fresh_package(self):
        first, _flavours, _artifacts = self.onboard(self.build('--fresh-id'))
        second, _flavours, _artifacts = self.onboard(
            self.build('--fresh-id'))
        self.assertNotEqual(first['descriptor_id'], second['descriptor_id'])

    def test_tacker_reads_it(self):
        data, flavours, artifacts = self.onboard(
            self.build('--vnfd-id', str(uuid.UUID(int=7))))
        self.assertEqual(str(uuid.UUID(int=7)), data['descriptor_id'])
        self.assertEqual('Firewall', data['product_name'])
        self.assertEqual(['simple'], [f['flavour_id'] for f in flavours])
        self.assertEqual({'Files/firewall.click', 'Scripts/mgmt_driver.py'},
                         {artifact['Source'] for artifact in artifacts})

    def test_every_template_is_read_by_tacker(self):
        folders = [path for path in base.TEMPLATES.iterdir()
                   if (path / 'Definitions').is_dir()]
        self.assertGreater(len(folders), 5)
        for path in folders:
            csar = self.work / 'each.csar'
            build_csar.main([str(path), str(csar), '--fresh-id'])
            self.assertTrue(self.onboard(csar)[0]['descriptor_id'])

    def test_configurations_have_their_libraries(self):
        text = build_csar.collect(base.TEMPLATES / 'nat')[
            'Files/nat.click'].decode()
        self.assertNotIn('require', text)
        self.assertLess(text.index('elementclass FromVif'),
                        text.index(':: FromVif'))
        self.assertEqual(1, text.count('SPDX'))

    def test_a_library_that_is_missing_is_named(self):
        path = self.work / 'wrong.click'
        path.write_text('require(library nothing.click);\nIdle;\n')
        with self.assertRaisesRegex(SystemExit,
                                    'nothing.click: no such library.*vif'):
            build_csar.configuration(path)

    def test_the_mgmt_driver_is_the_installed_one(self):
        with zipfile.ZipFile(self.build()) as csar:
            self.assertEqual(pathlib.Path(mgmt_driver.__file__).read_bytes(),
                             csar.read('Scripts/mgmt_driver.py'))

    def tamper(self, change):
        files = build_csar.collect(base.TEMPLATES / 'firewall')
        change(files)
        path = self.work / 'tampered.csar'
        build_csar.write(path, files)
        return path

    def test_onboarding_refuses_a_missing_artifact(self):
        path = self.tamper(lambda files: files.pop('Files/firewall.click'))
        with self.assertRaisesRegex(exceptions.InvalidCSAR,
                                    'Files/firewall.click'):
            self.onboard(path)

    def test_onboarding_refuses_a_changed_artifact(self):
        path = self.tamper(lambda files: files.update(
            {'Files/firewall.click': b'Idle;'}))
        with self.assertRaisesRegex(exceptions.InvalidCSAR,
                                    'Files/firewall.click'):
            self.onboard(path)

    def test_an_id_that_is_no_uuid(self):
        with self.assertRaises(SystemExit):
            self.build('--vnfd-id', 'x\n  evil: 1')
        with self.assertRaises(ValueError):
            build_csar.collect(base.TEMPLATES / 'firewall', 'x\n  evil: 1')

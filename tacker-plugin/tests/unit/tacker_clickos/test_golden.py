# SPDX-License-Identifier: Apache-2.0
"""From VNFD and request to configuration and writes, case by case."""

import base64
import json
import os
import shutil

from tacker_clickos.clickgen import document
from tacker_clickos.clickgen import prelude
from tacker_clickos.vnfd import loader
from tacker_clickos.vnfd import model
from tacker_clickos.vnfd import values as vnfd_values
from tests.unit.tacker_clickos import base

GOLDEN = base.ROOT / 'tacker-plugin' / 'tests' / 'golden'


class GoldenTest(base.TestCase):

    def lay_out(self, case):
        if (case / 'template').exists():
            base.build_package(self.package,
                               (case / 'template').read_text().strip())
            return
        shutil.rmtree(self.package)
        (self.package / 'Definitions').mkdir(parents=True)
        for name in ('vnfd.yaml', 'input.click'):
            shutil.copy(case / name, self.package / 'Definitions')

    def render(self, case):
        self.lay_out(case)
        request = json.loads((case / 'request.json').read_text())
        vdus = loader.load(str(self.package), 'simple').vdus
        values = vnfd_values.merge(model.properties(vdus), {},
                                   request['properties'])
        return document.render(
            vdus['VDU1'].configuration,
            [prelude.Interface(**each) for each in request['interfaces']],
            values)

    def check(self, path, text):
        if os.environ.get('CLICKOS_WRITE_GOLDEN'):
            path.write_text(text)
        self.assertEqual(path.read_text(), text)

    def test_cases(self):
        cases = [path for path in sorted(GOLDEN.iterdir())
                 if path.is_dir()]
        self.assertGreaterEqual(len(cases), 2)
        for case in cases:
            with self.subTest(case.name):
                found = json.loads(base64.b64decode(
                    self.render(case).user_data()))
                self.check(case / 'expected.click', found.pop('config'))
                self.check(case / 'expected.json',
                           json.dumps(found, indent=2) + '\n')

    def test_every_type_has_a_case(self):
        text = (GOLDEN / 'all-types' / 'vnfd.yaml').read_text()
        for type_ in vnfd_values.TYPES:
            self.assertRegex(text, r'\btype: %s\b' % type_)

    def test_the_template_keeps_its_line_numbers(self):
        template = base.build_csar().configuration(
            base.TEMPLATES / 'firewall' / 'Files' / 'firewall.click')
        config = self.render(GOLDEN / 'firewall').config
        self.assertTrue(config.endswith('\n# 1 "firewall.click"\n'
                                        + template))

# SPDX-License-Identifier: Apache-2.0
"""The check of names finds what cannot work when it runs."""

from clickos_lab.checks import names
from clickos_lab import paths
from tests.unit import base


class NamesTest(base.TestCase):

    def read(self, text, **more):
        for name, content in {'module': text, **more}.items():
            (self.folder / f'{name}.py').write_text(content)
        return names.read(self.folder, ['module.py'])

    def test_good_code_passes(self):
        self.assertEqual((0, ''), self.read(
            'import other\n\nprint(other.NAMES[0])\n',
            other="NAMES = ('a',)\n"))

    def test_a_missing_attribute_fails(self):
        status, text = self.read('import other\n\nprint(other.NAME)\n',
                                 other="NAMES = ('a',)\n")
        self.assertNotEqual(0, status)
        self.assertIn("Module 'other' has no 'NAME' member", text)

    def test_a_missing_attribute_of_the_lab_fails(self):
        status, text = self.read('from clickos_lab.xen import compute\n\n'
                                 'print(compute.NAME)\n')
        self.assertNotEqual(0, status)
        self.assertIn("has no 'NAME' member", text)

    def test_a_removed_import_fails(self):
        status, text = self.read('print(os.getpid())\n')
        self.assertNotEqual(0, status)
        self.assertIn("Undefined variable 'os'", text)

    def test_a_removed_package_fails(self):
        status, text = self.read('import no_such_package\n')
        self.assertNotEqual(0, status)
        self.assertIn("Unable to import 'no_such_package'", text)

    def test_a_missing_argument_fails(self):
        status, _ = self.read('def add(a, b):\n    return a + b\n\n\nadd(1)\n')
        self.assertNotEqual(0, status)

    def test_each_part_has_its_files(self):
        self.assertEqual(
            {'nova-driver': ['a.py', 'tests/b.py'], '.': ['docs/conf.py']},
            names.by_part(['nova-driver/a.py', 'docs/conf.py',
                           'nova-driver/tests/b.py']))

    def test_programs_without_a_suffix_are_python(self):
        self.assertTrue(names.is_python(
            'packaging/agent/root/usr/bin/clickos-agent'))
        self.assertFalse(names.is_python('Makefile'))
        self.assertTrue((paths.REPO / 'Makefile').exists())

# SPDX-License-Identifier: Apache-2.0
"""The parts of ``make soak``."""

import contextlib
import io
from unittest import mock

from clickos_lab import errors
from clickos_lab import paths
from clickos_lab.suites import soak
from tests.unit import base


class SoakTest(base.TestCase):

    def test_an_unknown_part_is_refused(self):
        with contextlib.redirect_stdout(io.StringIO()) as out:
            self.assertEqual(2, soak.main(['cycles', 'bogus']))
        self.assertIn('bogus: no such part; there are routers', out.getvalue())

    def test_a_part_without_what_it_needs_stops_no_other(self):
        def missing(_names):
            raise errors.LabError('no nightly Rust')
        ran = []
        with contextlib.redirect_stdout(io.StringIO()) as out, \
                mock.patch.dict(soak._OTHERS, {
                    'fuzz': missing, 'seeds': lambda _: ran.append(1) or 0}), \
                mock.patch.object(soak.results, 'record'):
            self.assertEqual(1, soak.main(['fuzz', 'seeds']))
        self.assertEqual([1], ran)
        for text in ('error: fuzz: no nightly Rust', '| `fuzz` | FAILED |',
                     '| `seeds` | passed |'):
            self.assertIn(text, out.getvalue())

    def test_help_has_a_line_for_each_part(self):
        with contextlib.redirect_stdout(io.StringIO()) as out:
            self.assertEqual(0, soak.main(['help']))
        lines = dict(line.split(': ', 1)
                     for line in out.getvalue().splitlines())
        self.assertLessEqual({*soak.PARTS, 'attack', 'rings'}, set(lines))
        self.assertIn('hostile guest', lines['attack'])
        self.assertIn('garbage', lines['rings'])
        for name, text in lines.items():
            self.assertRegex(text, r'\w+ \w+ .*\.$', name)

    def test_each_part_is_a_file_of_tests(self):
        folder = paths.REPO / 'devstack/lab'
        files = {f'{name.replace(".", "/")}.py'
                 for name in (*soak.PARTS.values(), *soak.ALONE)}
        found = {str(path.relative_to(folder))
                 for path in (folder / 'tests/soak').glob('test_*.py')}
        self.assertEqual(found, files)

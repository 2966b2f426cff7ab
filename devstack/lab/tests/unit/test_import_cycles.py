# SPDX-License-Identifier: Apache-2.0
"""Cycles among the modules of a crate."""

import contextlib
import io
import unittest

from clickos_lab.checks import import_cycles

_LINE = {'lib.rs': 'use crate::{a, b};', 'a.rs': 'use crate::b::B;',
         'b/mod.rs': 'use crate::c;', 'b/part.rs': '', 'c.rs': 'use std::fs;'}
_RING = {**_LINE, 'c.rs': 'fn f() { crate::{other, a::x}; }'}


class ImportCyclesTest(unittest.TestCase):

    def cycles(self, files):
        return import_cycles.cycles(import_cycles.imports(files))

    def test_imports_are_found_in_all_their_forms(self):
        self.assertEqual({'a': {'b'}, 'b': {'c'}, 'c': {'a'}},
                         import_cycles.imports(_RING))

    def test_only_modules_in_a_ring_are_named(self):
        self.assertEqual([], self.cycles(_LINE))
        ring = {**_RING, 'd.rs': 'use crate::a;'}
        self.assertEqual(['a', 'b', 'c'], self.cycles(ring))

    def test_a_count_may_neither_rise_nor_stay_behind(self):
        with contextlib.redirect_stdout(io.StringIO()):
            self.assertEqual([], import_cycles.check('x', _RING, 3))
            self.assertIn('limit is 2: a b c',
                          import_cycles.check('x', _RING, 2)[0])
            self.assertIn('lower', import_cycles.check('x', _LINE, 1)[0])

    def test_imports_of_unit_tests_do_not_count(self):
        text = '#[cfg(test)]\nmod tests {\n    use crate::a;\n}\n'
        self.assertEqual([], self.cycles({**_LINE, 'c.rs': text}))
        self.assertEqual(['a', 'b', 'c'], self.cycles(
            {**_LINE, 'c.rs': text + 'use crate::a;\n'}))

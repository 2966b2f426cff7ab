# SPDX-License-Identifier: Apache-2.0
"""Circles among the modules of a crate."""

import contextlib
import io
import unittest

from clickos_lab.checks import circles

_LINE = {'lib.rs': 'use crate::{a, b};', 'a.rs': 'use crate::b::B;',
         'b/mod.rs': 'use crate::c;', 'b/part.rs': '', 'c.rs': 'use std::fs;'}
_RING = {**_LINE, 'c.rs': 'fn f() { crate::{other, a::x}; }'}


class CirclesTest(unittest.TestCase):

    def test_imports_are_found_in_all_their_forms(self):
        self.assertEqual({'a': {'b'}, 'b': {'c'}, 'c': {'a'}},
                         circles.imports(_RING))

    def test_only_modules_in_a_ring_are_named(self):
        self.assertEqual([], circles.circles(circles.imports(_LINE)))
        ring = {**_RING, 'd.rs': 'use crate::a;'}
        self.assertEqual(['a', 'b', 'c'],
                         circles.circles(circles.imports(ring)))

    def test_a_count_may_neither_rise_nor_stay_behind(self):
        with contextlib.redirect_stdout(io.StringIO()):
            self.assertEqual([], circles.check('x', _RING, 3))
            self.assertIn('limit is 2: a b c',
                          circles.check('x', _RING, 2)[0])
            self.assertIn('lower', circles.check('x', _LINE, 1)[0])

    def test_imports_of_unit_tests_do_not_count(self):
        text = '#[cfg(test)]\nmod tests {\n    use crate::a;\n}\n'
        self.assertEqual([], circles.circles(circles.imports(
            {**_LINE, 'c.rs': text})))
        self.assertEqual(['a', 'b', 'c'], circles.circles(circles.imports(
            {**_LINE, 'c.rs': text + 'use crate::a;\n'})))

# SPDX-License-Identifier: Apache-2.0
"""A module that goes around a deciding one is a fault."""

import re
import unittest

from clickos_lab.checks import deciders
from clickos_lab.checks import decisions

_RULE = deciders.Rule('tables', 'p', re.compile(r'app\.db\.models\b'),
                      frozenset({'store.py'}))
_USES = 'from app.db import models\nmodels.Row\n'
_FILES = {
    'tacker-plugin/app/store.py': 'class Store:\n    def find(self):\n'
                                  '        pass\ndef plain():\n    pass\n',
    'tacker-plugin/app/__init__.py': '',
    'vale/valed/src/policy/guard.rs':
        'impl Guard {\n    pub fn judge() {}\n}\n'
        'pub fn free() {}\n'
        'const V: &str = "chain-set";\n'}
_ROWS = ''.join(f'| {each} | `app.store.plain` |\n'
                for each in decisions.QUESTIONS)


def table(*cells):
    """Return a table with a row for each question, and others."""
    return ('# Functions\n| question | functions |\n|---|---|\n' + _ROWS
            + ''.join(f'| more | {cell} |\n' for cell in cells) + '\ntext\n')


class ImportsTest(unittest.TestCase):

    def breaches(self, **files):
        return list(deciders.breaches(_RULE, {
            f'{name}.py': text for name, text in files.items()}))

    def test_only_the_named_modules_may(self):
        self.assertEqual([], self.breaches(store=_USES, other='import os\n'))
        for text in (_USES, 'import app.db.models\n',
                     'from app.db import models as m\n',
                     'import app\ndef f():\n    return app.db.models.Row\n',
                     'def f():\n    from app.db.models import Row\n'):
            (found,) = self.breaches(store=_USES, other=text)
            self.assertIn('p/other.py: uses tables; ask one of store.py',
                          found)

    def test_a_module_that_needs_it_no_more_leaves_the_rule(self):
        (found,) = self.breaches(store='import os\n')
        self.assertIn('p/store.py: uses no tables', found)

    def test_getters_are_found_behind_any_object_and_alias(self):
        names = deciders.names(
            'from a import keys as k\nself._x.cloud.server(1)\nk.of_state\n')
        self.assertLessEqual({'self._x.cloud.server', 'keys.of_state'}, names)
        rule = deciders.RULES[2]
        for name in ('cloud.server', 'self._cloud.server',
                     'operations.cloud.neutron'):
            self.assertTrue(re.match(rule.names, name), name)
        self.assertFalse(re.match(rule.names, 'self.cloud.forget'))

    def test_every_rule_is_of_a_package(self):
        for rule in deciders.RULES:
            self.assertTrue((deciders.paths.REPO / rule.package).is_dir(),
                            rule.package)


class DecisionsTest(unittest.TestCase):

    def problems(self, *cells):
        code = decisions.Code(sorted(_FILES), _FILES.__getitem__)
        return decisions.problems(table(*cells), code)

    def test_functions_that_exist(self):
        found, count = self.problems(
            '`app.store.Store.find`, `plain` and `Store`', '`Guard::judge`',
            '`guard::free` of `app.store`, at `chain-set`',
            '`valed`-like `vale-x`')
        self.assertEqual(['more: there is no valed',
                          'more: there is no vale-x'], found)
        self.assertEqual(len(decisions.QUESTIONS) + 9, count)

    def test_functions_that_do_not(self):
        for name in ('app.store.Store.gone', 'app.store.gone', 'gone',
                     'app.gone', 'Guard::gone', 'Other::judge',
                     'other::free'):
            self.assertEqual([f'more: there is no {name}'],
                             self.problems(f'`{name}`')[0])

    def test_a_row_without_a_function(self):
        self.assertEqual(['more: names no function'],
                         self.problems('nobody')[0])

    def test_a_question_without_an_answer(self):
        text = table().replace('| text to page |', '| text to a page |')
        code = decisions.Code(sorted(_FILES), _FILES.__getitem__)
        self.assertEqual(['no function decides: text to page'],
                         decisions.problems(text, code)[0])

    def test_other_tables_are_left_alone(self):
        text = table() + '\n| part | trusted |\n|---|---|\n| a | `gone` |\n'
        code = decisions.Code(sorted(_FILES), _FILES.__getitem__)
        self.assertEqual([], decisions.problems(text, code)[0])

# SPDX-License-Identifier: Apache-2.0
"""The tiers of tests: none leaves out what a smaller one runs."""

import re

from clickos_lab import paths
from clickos_lab.suites import catalog
from clickos_lab.suites import command
from tests.unit import base

#: Of `make test`: the suite of `make integration` that runs as much and more.
_LONGER = {'xen-boot': 'xen'}


class CatalogTest(base.TestCase):

    def names(self, tier):
        return [suite.name for suite in catalog.TIERS[tier](self.state)]

    def test_each_tier_has_each_suite_once(self):
        for tier in catalog.TIERS:
            names = self.names(tier)
            self.assertEqual(len(set(names)), len(names), tier)

    def test_integration_runs_all_that_test_runs(self):
        wanted = {_LONGER.get(name, name) for name in self.names('test')}
        self.assertLessEqual(wanted, set(self.names('integration')))

    def test_test_runs_all_linters_and_unit_tests(self):
        wanted = {*self.names('lint'), *self.names('unit')} - {'rust-units'}
        self.assertLessEqual(wanted, set(self.names('test')))

    def test_each_suite_proves_that_it_ran_tests(self):
        for suite in catalog.integration(self.state):
            is_check = 'clickos_lab.checks' in ' '.join(map(str,
                                                            suite.command))
            if not is_check and suite.name not in (
                    'rustfmt', 'pep8', 'names', 'bandit', 'clippy'):
                self.assertIsNotNone(suite.required_output, suite.name)

    def test_a_former_name_selects_the_suite(self):
        found, = command.chosen(self.state, ['circles'], 'lint')
        self.assertEqual('import_cycles', found.name)

    def test_contributing_lists_the_tiers(self):
        text = (paths.REPO / 'CONTRIBUTING.md').read_text()
        rows = re.findall(r'^\| `make (\w+)` \|', text, re.MULTILINE)
        self.assertLessEqual(set(catalog.TIERS), set(rows))

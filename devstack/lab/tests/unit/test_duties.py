# SPDX-License-Identifier: Apache-2.0
"""Manuals of VNFs claim what the suite ``duties`` tests, and nothing else."""

import inspect
import unittest

from clickos_lab.duties import duty
from clickos_lab.duties import readme
from clickos_lab.duties import rows
from clickos_lab.vnf import csar
from clickos_lab.vnf import process_bench
from clickos_lab.vnf import xen_bench


class DutiesTest(unittest.TestCase):

    def test_manuals_have_the_duties(self):
        for name in csar.names():
            text = (csar.TEMPLATES / name / 'README.md').read_text()
            self.assertEqual(readme.updated(text, name), text,
                             f'{name}: make csars writes the table')

    def test_a_table_is_replaced(self):
        text = 'NAT.\n\nLimits: none.\n'
        made = readme.updated(text, 'nat')
        self.assertIn('| hairpin by the public address, UDP |', made)
        self.assertEqual(made, readme.updated(made, 'nat'))
        router = readme.updated(made, 'router')
        self.assertNotIn('hairpin', router)
        self.assertEqual(text, readme.updated(text, 'wire'))

    def test_each_cell_of_the_table_is_a_test_or_a_reason(self):
        known = set(csar.names())
        for row in rows.DUTIES:
            self.assertLessEqual(set(row.vnfs), known, row.name)
            for name in known:
                self.assertEqual(name in row.vnfs, row.reason(name) is None)

    def test_both_kinds_of_hosts_give_a_guest_its_image(self):
        for host in (process_bench.Host, xen_bench.Host):
            inspect.signature(host.image).bind(None, 'config', 'profile')

    def test_no_duty_is_there_twice(self):
        names = [row.name for row in rows.DUTIES]
        self.assertEqual(len(set(names)), len(names))
        self.assertEqual(len(duty.DUTIES), len(rows.DUTIES))

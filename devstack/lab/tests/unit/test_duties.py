# SPDX-License-Identifier: Apache-2.0
"""The table of duties on the site says what the suite ``duties`` tests."""

import contextlib
import inspect
import io
import unittest

from clickos_lab.duties import __main__ as listing
from clickos_lab.duties import duty
from clickos_lab.duties import rows
from clickos_lab.site import duties as page
from clickos_lab.vnf import csar
from clickos_lab.vnf import process_bench
from clickos_lab.vnf import xen_bench


class DutiesTest(unittest.TestCase):

    def test_the_page_has_a_row_for_each_duty_with_its_functions(self):
        made = page.markdown(None).splitlines()
        self.assertIn('| hairpin by the public address, UDP | '
                      'RFC 4787, REQ-9 | cgn, nat |', made)
        self.assertEqual(len(rows.DUTIES) + len(('', 'head', 'rule')),
                         len(made))

    def test_the_command_prints_the_duties_of_a_function(self):
        status, printed = self._printed('router')
        self.assertEqual(0, status)
        self.assertIn('TTL 1 from left (RFC 1812, 5.3.1)', printed)
        self.assertNotIn('hairpin', printed)

    def test_the_command_names_functions_that_do_not_exist(self):
        for names in ([], ['roter']):
            status, printed = self._printed(*names)
            self.assertEqual(2, status)
            self.assertIn('there are bras, cgn', printed)

    @staticmethod
    def _printed(*names):
        with contextlib.redirect_stdout(io.StringIO()) as printed, \
                contextlib.redirect_stderr(printed):
            status = listing.main(list(names))
        return status, printed.getvalue()

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

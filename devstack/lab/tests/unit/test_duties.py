# SPDX-License-Identifier: Apache-2.0
"""The table of duties on the site says what the suite ``duties`` tests."""

import contextlib
import inspect
import io
import re
import unittest

from clickos_lab.duties import __main__ as listing
from clickos_lab.duties import duty
from clickos_lab.duties import rows
from clickos_lab.site import duties as page
from clickos_lab.vnf import csar
from clickos_lab.vnf import process_bench
from clickos_lab.vnf import xen_bench

#: of an RFC or, as 802, of a standard of IEEE
_NUMBER = re.compile(r'(?<!-)\b[1-9][0-9]{2,4}(?![0-9])')


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

    def test_a_manual_names_the_standards_that_are_tested(self):
        for name in csar.names():
            text = (csar.TEMPLATES / name / 'README.md').read_text()
            lines = [line for line in text.splitlines()
                     if line.startswith('Standards: ')]
            wanted = {number for row in rows.DUTIES if name in row.vnfs
                      for number in _NUMBER.findall(row.rfc)}
            named = {number for line in lines
                     for number in _NUMBER.findall(line)}
            self.assertEqual(wanted, named, f'{name}/README.md')

    def test_both_kinds_of_hosts_give_a_guest_its_image(self):
        for host in (process_bench.Host, xen_bench.Host):
            inspect.signature(host.image).bind(None, 'config', 'profile')

    def test_no_duty_is_there_twice(self):
        names = [row.name for row in rows.DUTIES]
        self.assertEqual(len(set(names)), len(names))
        self.assertEqual(len(duty.DUTIES), len(rows.DUTIES))

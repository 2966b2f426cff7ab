# SPDX-License-Identifier: Apache-2.0
"""The table of operations during outages."""

import json
import os
import pathlib
import re
import resource
import subprocess
import sys
import tempfile
import unittest

from clickos_lab import exhaustion
from clickos_lab.suites import faults

_ROW = {'fault': 'nova kill', 'operation': 'heal', 'outcome': 'completed',
        'seconds': 12, 'reason': '', 'away_s': 10}


class TableTest(unittest.TestCase):

    def test_rows_and_their_sum(self):
        rows = [_ROW, {**_ROW, 'outcome': 'retried', 'reason': 'a |\nb'}]
        found = list(faults.lines(rows))
        self.assertEqual('| nova kill | 10 | heal | completed | 12 |  |',
                         found[2])
        self.assertIn('| a / b |', found[3])
        self.assertEqual(
            'seen: 1 of 2 operations with a daemon away for 10 s completed '
            'by themselves (50 %), 1 after a retry, 0 not at all', found[-1])

    def test_outages_of_a_minute_have_a_sum_of_their_own(self):
        found = list(faults.lines([_ROW, {**_ROW, 'away_s': 60}]))
        self.assertIn('1 of 1 operations with a daemon away for 10 s',
                      found[-2])
        self.assertIn('1 of 1 operations with a daemon away for 60 s',
                      found[-1])

    def test_a_lost_operation_counts(self):
        self.assertEqual(0, faults.share([{**_ROW, 'outcome': 'lost'}]))

    def test_a_file_of_rows(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, 'rows')
            self.assertEqual([], faults.read(path))
            path.write_text(json.dumps(_ROW) + '\n')
            self.assertEqual([_ROW], faults.read(path))

    def test_cases_can_be_chosen(self):
        chosen = re.compile(faults._regex('heal_nova_kill|_keystone_'))
        for name, is_chosen in (('heal_nova_kill', True),
                                ('scale_keystone_stop', True),
                                ('scale_nova_kill', False)):
            self.assertEqual(is_chosen, bool(chosen.search(
                f'tests.serial.test_faults.FaultsTableTest.test_{name}[id]')))


class ExhaustionTest(unittest.TestCase):
    """Limits of a process that runs, and their end."""

    def setUp(self):
        super().setUp()
        self.process = subprocess.Popen(
            [sys.executable, '-c', 'print(flush=True); input()'],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.process.stdout.readline()
        self.addCleanup(self.process.wait)
        self.addCleanup(self.process.stdout.close)
        self.addCleanup(self.process.stdin.close)
        self.addCleanup(self.process.kill)

    def test_each_resource_is_used_up_meanwhile(self):
        pid = self.process.pid
        for kind, number in (('descriptors', resource.RLIMIT_NOFILE),
                             ('memory', resource.RLIMIT_AS)):
            before = resource.prlimit(pid, number)
            with exhaustion.of([pid], kind):
                soft, hard = resource.prlimit(pid, number)
                self.assertEqual(before[1], hard)
                if kind == 'descriptors':
                    self.assertEqual(len(os.listdir(f'/proc/{pid}/fd')), soft)
                else:
                    self.assertLess(soft, 2 ** 40)
            self.assertEqual(before, resource.prlimit(pid, number))

    def test_a_process_that_is_gone_is_no_trouble(self):
        self.process.kill()
        self.process.wait()
        with exhaustion.of([self.process.pid], 'memory'):
            pass

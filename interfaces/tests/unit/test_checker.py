# SPDX-License-Identifier: Apache-2.0
"""What the answers of click-check mean."""

import subprocess
import unittest

from clickos_client import checker


class GroupsTest(unittest.TestCase):

    def groups(self, status, out='', err=''):
        """Return the groups of an answer; keep the command."""
        def run(command, text, error):
            self.assertEqual(('text', checker.CheckerError), (text, error))
            self.command = command
            return subprocess.CompletedProcess(command, status, out, err)
        return checker.groups('program', 'text', run)

    def test_groups_and_their_classes(self):
        self.assertEqual({'ip': 'IPFilter', 'standard': 'Queue'},
                         self.groups(0, 'ip IPFilter\nstandard Queue\n'))
        self.assertEqual(['program', '--groups', '--guest', '--no-warnings',
                          '--file', '-'], self.command)

    def test_a_wrong_configuration(self):
        with self.assertRaisesRegex(checker.ConfigurationError, 'x:1:2: no'):
            self.groups(1, err='x:1:2: no\n')

    def test_a_program_that_does_not_know_the_option(self):
        for status in (2, 127, -9):
            with self.assertRaisesRegex(checker.CheckerError, str(status)):
                self.groups(status, err='unexpected argument')
        with self.assertRaisesRegex(checker.CheckerError, 'status 1'):
            self.groups(1)

    def test_limits_that_cannot_be_set_are_no_fault_of_the_text(self):
        with self.assertRaisesRegex(checker.CheckerError, 'prlimit'):
            self.groups(1, err='prlimit: failed to set the AS resource limit:'
                               ' Operation not permitted\n')

    def test_a_program_that_a_limit_ends(self):
        with self.assertRaisesRegex(checker.Ended, '-9'):
            self.groups(-9)

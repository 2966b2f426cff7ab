# SPDX-License-Identifier: Apache-2.0
"""The runs of ``click`` under ThreadSanitizer."""

import contextlib
import io
import pathlib
import stat
import tempfile
import unittest

from clickos_lab.suites import races


def _program(folder, text):
    """Make a program that stands for click."""
    program = pathlib.Path(folder) / 'click'
    program.write_text(f'#!/bin/sh\n{text}\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return str(program)


class RacesTest(unittest.TestCase):

    def test_a_race_and_an_error_fail(self):
        self.assertIn('data race', races.report(
            'a', 0, 'WARNING: ThreadSanitizer: data race (pid=1)'))
        self.assertIn('status 1', races.report('a', 1, 'no such element'))
        self.assertIsNone(races.report('a', 0, 'q :: Queue: overflow'))

    def test_each_case_runs_with_the_code_that_is_left_out(self):
        check = 'grep -q letters::Shared "${TSAN_OPTIONS##*=}"'
        with tempfile.TemporaryDirectory() as folder, \
                contextlib.redirect_stdout(io.StringIO()):
            self.assertEqual(0, races.main(_program(folder, check)))
            self.assertEqual(1, races.main(_program(folder, 'exit 66')))

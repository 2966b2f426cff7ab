# SPDX-License-Identifier: Apache-2.0
"""A test that hangs is named, and the others run."""

import os
import subprocess
import sys
import textwrap

from clickos_lab import paths
from tests.unit import base

_LIMITS = paths.REPO / 'devstack/lab/limits'
_TESTS = '''
import signal
import time
import unittest

import testtools


class HangingTest(unittest.TestCase):

    def tearDown(self):
        print('tearDown ran')

    def test_a_hangs(self):
        time.sleep(1000)

    def test_b_passes(self):
        pass

    def test_c_has_more_time(self):
        time.sleep(0.4)

    test_c_has_more_time.limit_s = 60


class ToolsTest(testtools.TestCase):

    def test_d_hangs(self):
        time.sleep(1000)

    def test_e_runs_another_one(self):
        HangingTest('test_b_passes')(unittest.TestResult())
        time.sleep(1000)


class SetUpTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        time.sleep(1000)

    def test_f_never_runs(self):
        pass


class TearDownTest(unittest.TestCase):

    @classmethod
    def tearDownClass(cls):
        time.sleep(1000)

    def test_f_passes(self):
        pass


class PartsTest(unittest.TestCase):

    def test_a_part_hangs(self):
        for name in range(1000):
            with self.subTest(name):
                time.sleep(1000)

    def test_b_parts_pass(self):
        with self.subTest():
            print('the next one ran')


class StubbornTest(unittest.TestCase):

    def test_g_cannot_be_interrupted(self):
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])
        time.sleep(1000)
'''


class TimeLimitTest(base.TestCase):

    def run_tests(self, *names, seconds='1'):
        """Run tests in a program of their own; return it when it is over."""
        (self.folder / 'hanging.py').write_text(textwrap.dedent(_TESTS))
        return subprocess.run(
            [sys.executable, '-m', 'unittest', '-v',
             *(f'hanging.{name}' for name in names)], cwd=self.folder,
            env={**os.environ, 'PYTHONPATH': os.pathsep.join(
                [str(_LIMITS), *filter(None, sys.path)]),
                'TEST_LIMIT_S': seconds},
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, timeout=50)

    def test_one_that_hangs_is_named_and_cleans_up(self):
        done = self.run_tests('HangingTest')
        self.assertEqual(1, done.returncode, done.stdout)
        name = 'hanging.HangingTest.test_a_hangs'
        self.assertIn(f'time limit: {name}: not done after 1 s',
                      done.stdout)
        self.assertIn(f'TestTimeout: {name}', done.stdout)
        self.assertIn('Ran 3 tests', done.stdout)
        self.assertIn('FAILED (errors=1)', done.stdout)
        self.assertEqual(3, done.stdout.count('tearDown ran'))

    def test_another_base_and_a_test_within_a_test(self):
        done = self.run_tests('ToolsTest')
        self.assertIn('Ran 2 tests', done.stdout)
        for name in ('test_d_hangs', 'test_e_runs_another_one'):
            self.assertIn(f'TestTimeout: hanging.ToolsTest.{name}: ',
                          done.stdout)

    def test_no_part_begins_beyond_the_limit(self):
        done = self.run_tests('PartsTest')
        self.assertIn('Ran 2 tests', done.stdout)
        self.assertEqual(1, done.stdout.count('time limit: '), done.stdout)
        self.assertIn('the next one ran', done.stdout)

    def test_the_set_up_of_a_class_is_limited(self):
        done = self.run_tests('SetUpTest')
        self.assertIn('TestTimeout: setUpClass (hanging.SetUpTest): not '
                      'done after 3 s',
                      done.stdout)

    def test_the_end_of_a_class_is_limited(self):
        done = self.run_tests('TearDownTest')
        self.assertIn('TestTimeout: tearDownClass (hanging.TearDownTest): not '
                      'done after 3 s', done.stdout)

    def test_one_that_cannot_be_interrupted_ends_the_process(self):
        done = self.run_tests('StubbornTest')
        self.assertEqual(1, done.returncode, done.stdout)
        self.assertIn('test_g_cannot_be_interrupted', done.stdout)
        self.assertNotIn('Ran 1 test', done.stdout)

    def test_a_generous_limit_changes_nothing(self):
        done = self.run_tests('HangingTest.test_b_passes', seconds='60')
        self.assertEqual(0, done.returncode, done.stdout)

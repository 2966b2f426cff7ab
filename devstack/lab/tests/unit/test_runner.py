# SPDX-License-Identifier: Apache-2.0
"""The runner of the suites: no failure may look like a success."""

import contextlib
import io
import os
import re
import signal
import threading
import time

from clickos_lab import processes
from clickos_lab.suites import again
from clickos_lab.suites import runner
from tests.unit import base


class RunnerTest(base.TestCase):

    def run_suites(self, *suites):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            outcomes = runner.run_all(suites, self.state.log,
                                      dict(os.environ))
            status = runner.report(outcomes, 0)
        return status, printed.getvalue()

    @staticmethod
    def suite(script, **more):
        return runner.Suite('one', ['sh', '-c', script], **more)

    def test_passed(self):
        status, text = self.run_suites(self.suite(
            'echo ran 3 tests, skipped 0', required_output='ran [1-9]',
            forbidden_output='skipped [1-9]'))
        self.assertEqual(0, status)
        self.assertEqual('1 passed, 0 failed', text.splitlines()[-1])

    def test_failures(self):
        for suite, reason in (
                (self.suite('exit 3'), 'exit status 3'),
                (self.suite('kill -9 $$'), 'exit status -9'),
                (self.suite('echo ran 0 tests', required_output='ran [1-9]'),
                 'ran no tests'),
                (self.suite('echo ran 3 tests, skipped 1',
                            required_output='ran [1-9]',
                            forbidden_output='skipped [1-9]'),
                 'skipped 1; see'),
                (self.suite('sleep 1000', timeout_s=1), 'not done after'),
                (runner.Suite('one', ['/no/such/tool']), 'No such file')):
            status, text = self.run_suites(suite)
            self.assertEqual(1, status)
            self.assertIn(reason, text)
            self.assertEqual('0 passed, 1 failed', text.splitlines()[-1])

    def test_the_end_names_the_failed_tests(self):
        named = ('test tests::a_frame ... FAILED',
                 'test_ping (tests.xen.test_net.ValeTest.test_ping) ... FAIL',
                 '{0} tests.test_a.ATest.test_b [0.012345s] ... FAILED')
        _, text = self.run_suites(self.suite(
            'echo "test tests::other ... ok"; ' +
            ''.join(f'echo "{n}"; ' for n in named) + 'exit 1'))
        end = text[text.index('one: exit status'):]
        self.assertEqual([f'    {n}' for n in named], end.splitlines()[1:-1])

    def test_the_end_tells_why_a_test_failed(self):
        _, text = self.run_suites(self.suite(
            'echo "{0} tests.ATest.test_b [0.01s] ... FAILED"; '
            'echo "Captured traceback:"; echo "  File x.py, line 3"; '
            'echo "    builtins.AssertionError: 1.2 is not below 1"; exit 1'))
        self.assertIn('FAILED\n        builtins.AssertionError: 1.2 is not '
                      'below 1\n', text)

    def test_the_end_tells_the_message_of_a_panic(self):
        _, text = self.run_suites(self.suite(
            """echo "test a_chain ... FAILED"
            echo "thread 'a_chain' (7) panicked at tests/paths.rs:212:9:"
            echo "[7] of 90"; exit 1"""))
        self.assertIn('tests/paths.rs:212:9: [7] of 90\n', text)

    def test_a_test_that_passed_alone_is_named_at_the_end(self):
        status, text = self.run_suites(self.suite(
            f'echo "{again.MARK}tests.ATest.test_b"'))
        self.assertEqual(0, status)
        self.assertIn(f'one: {again.MARK}tests.ATest.test_b',
                      text.splitlines()[-2])

    def test_a_failure_does_not_stop_the_rest(self):
        status, text = self.run_suites(self.suite('exit 1'),
                                       self.suite('exit 0'))
        self.assertEqual(1, status)
        self.assertEqual('1 passed, 1 failed', text.splitlines()[-1])

    def meeting(self, name, other, looks=3000, **more):
        """Return a suite that waits until another one has begun."""
        here, there = (self.state.log / each for each in (name, other))
        return runner.Suite(name, ['sh', '-c', f"""
            touch {here}
            for i in $(seq {looks}); do
                [ -e {there} ] && exit; sleep 0.02
            done
            exit 1"""], **more)

    def test_suites_with_company_run_in_parallel(self):
        status, text = self.run_suites(
            self.meeting('one', 'two', runs_in_parallel=True),
            self.meeting('two', 'one', runs_in_parallel=True))
        self.assertEqual(0, status, text)
        rows = re.findall(r'^(one|two) +passed', text, re.MULTILINE)
        self.assertEqual(['one', 'two'], rows)

    def test_other_suites_run_alone(self):
        status, text = self.run_suites(
            self.meeting('one', 'two', looks=20),
            self.meeting('two', 'one', runs_in_parallel=True))
        self.assertEqual(1, status, text)
        self.assertEqual('1 passed, 1 failed', text.splitlines()[-1])

    def test_what_a_suite_left_running_ends_with_it(self):
        self.run_suites(self.suite('sleep 1000 & echo pid $!; exit 0'))
        log = (self.state.log / 'test-one.log').read_text()
        pid = re.search(r'pid (\d+)', log)[1]
        deadline_s = time.monotonic() + 60
        while (alive := processes.start_ticks(int(pid))) and \
                time.monotonic() < deadline_s:
            time.sleep(0.02)
        self.assertIsNone(alive)

    def test_a_suite_can_be_interrupted_in_a_run_in_the_background(self):
        self.addCleanup(signal.signal, signal.SIGINT,
                        signal.signal(signal.SIGINT, signal.SIG_IGN))
        status, text = self.run_suites(self.suite('kill -INT $$'))
        self.assertEqual(1, status)
        self.assertIn('exit status -2', text)

    def test_an_interrupt_ends_suites_that_run_in_parallel(self):
        begun = [self.folder / name for name in ('one', 'two')]
        suites = [self.suite(f'echo $$ > {file}.new; mv {file}.new {file}; '
                             'exec sleep 1000', runs_in_parallel=True)
                  for file in begun]

        def interrupt():
            while not all(file.exists() for file in begun):
                time.sleep(0.02)
            os.kill(os.getpid(), signal.SIGINT)

        self.addCleanup(signal.signal, signal.SIGINT, signal.signal(
            signal.SIGINT, signal.default_int_handler))
        other = threading.Thread(target=interrupt, daemon=True)
        other.start()
        self.assertRaises(KeyboardInterrupt, self.run_suites, *suites)
        other.join()
        for file in begun:
            self.assertIsNone(processes.start_ticks(int(file.read_text())))
        status, text = self.run_suites(
            *(self.suite('exit 0', runs_in_parallel=True) for _ in begun))
        self.assertEqual(0, status, text)

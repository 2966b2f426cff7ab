# SPDX-License-Identifier: Apache-2.0
"""Failed tests run again alone: none that fails twice may pass."""

import contextlib
import io
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest
from unittest import mock

from clickos_lab.checks import flaky
from clickos_lab import paths
from clickos_lab import processes
from clickos_lab.suites import again
from clickos_lab.suites import cargo_tests
from clickos_lab.suites import command
from clickos_lab.suites import results
from clickos_lab.suites import runner
from clickos_lab.suites import stestr_tests
from clickos_lab.suites import tempest_run
from clickos_lab.suites import unittests
from tests.unit import base

_LAB = paths.REPO / 'devstack/lab'
#: A stand-in for cargo, which runs all tests or, with --exact, one alone.
_CARGO = '''\
#!/bin/sh
case "$*" in
*--exact*) {alone} ;;
*) {whole} ;;
esac
'''
_RUNNING = 'echo "     Running unittests src/lib.rs (target/deps/a)"; '
_TARGET = 'echo "error: test failed, to rerun pass \\`--lib\\`"; '
_FAILS = (_RUNNING + 'echo "test a::b ... FAILED"; '
          'echo "test result: FAILED. 1 passed; 1 failed; 0 ignored"; '
          f'{_TARGET}exit 101')
_PASSES = _RUNNING + 'echo "test result: ok. 1 passed; 0 failed; 0 ignored"'
#: A module whose test passes if a file exists. Its first run makes the file.
_MODULE = '''\
import pathlib
import unittest
class ATest(unittest.TestCase):
    def test_b(self):
        mark = pathlib.Path('{mark}')
        seen = mark.exists()
        mark.touch()
        self.assertTrue(seen and {steady})
    def test_c(self):
        {other}
'''


def quietly(run, *arguments):
    """Return what a function returns and what it prints."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        return run(*arguments), printed.getvalue()


class AgainTest(base.TestCase):

    def test_each_test_must_pass_alone(self):
        for passing, judged, named in (
                ('ab', True, ['a', 'b']), ('a', False, ['a']),
                ('', False, [])):
            done, text = quietly(again.judge, ['a', 'b'],
                                 passing.__contains__)
            self.assertEqual(judged, done)
            self.assertEqual(named, [*map(again.named, text.splitlines())])

    def test_a_run_lists_those_of_its_suites(self):
        outcome = mock.Mock(again=['a', 'b'])
        outcome.name = 'suite'
        with mock.patch.object(runner, 'run_all', return_value=[outcome]), \
                mock.patch.object(again, 'add') as add:
            command.outcomes_of(paths.State(), [], 'abc')
        self.assertEqual(
            [('a', 'suite', 'abc'), ('b', 'suite', 'abc')],
            [(e['test'], e['suite'], e['commit'])
             for e in add.call_args.args[0]])

    def test_no_test_and_many_tests_are_not_run_again(self):
        for failed in [], ['a'] * (again.MOST + 1):
            self.assertFalse(again.judge(failed, self.fail))

    def test_the_list_and_its_second_entry(self):
        path = self.state.log / 'flaky.json'
        for _ in range(2):
            self.assertEqual([], flaky.problems(again.entries(path)))
            again.add([{'test': 'a'}], path)
        again.add([{'test': 'b'}], path)
        self.assertEqual(['flaky.json: a: failed 2 times and passed when run '
                          'again; mend it and remove its entries'],
                         flaky.problems(again.entries(path)))

    def test_results_keep_what_did_not_run(self):
        path = self.state.log / 'suites.json'
        results.record([('a', 1.2), ('b', 2)], '1234567', path)
        results.record([('b', 3)], '7654321', path)
        text = path.read_text()
        self.assertEqual(1, text.count('1234567'))
        self.assertIn('"seconds": 3', text)


class CargoTest(base.TestCase):

    def cargo(self, whole, alone):
        path = self.state.log / 'cargo'
        path.write_text(_CARGO.format(whole=whole, alone=alone))
        path.chmod(0o755)
        return quietly(cargo_tests.main, str(path), ['--workspace'])

    def test_one_that_passes_alone(self):
        # A program without names of tests has no result of its own.
        for before in '', _RUNNING:
            status, text = self.cargo(before + _FAILS, _PASSES)
            self.assertEqual(0, status)
            self.assertIn(f'{again.MARK}a::b\n', text)

    def test_failures_that_stay(self):
        crash = _RUNNING + _TARGET + _FAILS
        document = _FAILS.replace('1 failed', '2 failed')
        for whole, alone in ((_FAILS, _FAILS), (_FAILS, 'true'),
                             (crash, _PASSES), (document, _PASSES),
                             ('exit 101', _PASSES)):
            status, text = self.cargo(whole, alone)
            self.assertNotEqual(0, status, text)

    @mock.patch.object(cargo_tests, 'PATIENCE_S', 0)
    def test_one_that_hangs_is_named_and_ended(self):
        status, text = self.cargo(
            _RUNNING + 'echo "test a::b has been running for over 60 seconds";'
            ' exec sleep 1000', _PASSES)
        self.assertEqual(1, status)
        self.assertIn('error: a::b: hangs', text)

    def test_one_that_takes_long_does_not_hang(self):
        run = cargo_tests.Run()
        run.add('test a::b has been running for over 60 seconds')
        self.assertGreater(run.left_s(), cargo_tests.PATIENCE_S / 2)
        for end in 'ok', 'FAILED':
            run.add('test a::b has been running for over 60 seconds')
            run.add(f'test a::b ... {end}')
            self.assertIsNone(run.left_s())


class StestrTest(base.TestCase):

    def stestr(self, steady, other='pass'):
        with tempfile.TemporaryDirectory() as folder:
            tests = pathlib.Path(folder, 'tests/unit')
            tests.mkdir(parents=True)
            for place in tests, tests.parent:
                (place / '__init__.py').touch()
            (tests / 'test_a.py').write_text(_MODULE.format(
                mark=f'{folder}/mark', steady=steady, other=other))
            done = subprocess.run(
                [sys.executable, '-m', 'clickos_lab.suites.stestr_tests',
                 pathlib.Path(sys.executable).with_name('stestr'),
                 f'{folder}/results', folder, 'unit'], cwd=folder,
                env={**os.environ, 'PYTHONPATH': f'{folder}:{_LAB}'},
                capture_output=True, text=True)
            return done.returncode, done.stdout + done.stderr

    def test_one_that_passes_alone(self):
        status, text = self.stestr(True)
        self.assertEqual(0, status, text)
        self.assertIn(f'{again.MARK}tests.unit.test_a.ATest.test_b\n', text)

    def test_one_that_fails_twice(self):
        status, text = self.stestr(False)
        self.assertNotEqual(0, status, text)
        self.assertNotIn(again.MARK, text)

    def test_one_that_fails_with_a_part_runs_again_once(self):
        status, text = self.stestr(True, (
            'mark = pathlib.Path(__file__).with_name("c")\n'
            '        seen = mark.exists()\n'
            '        mark.touch()\n'
            '        with self.subTest():\n'
            '            self.assertTrue(seen)\n'
            '        self.assertTrue(seen)'))
        self.assertEqual(0, status, text)
        line = f'{again.MARK}tests.unit.test_a.ATest.test_c\n'
        self.assertEqual(1, text.count(line), text)

    def test_a_worker_that_dies_hides_no_tests(self):
        for crash in ('__import__("os")._exit(0)',
                      'self.id = "hides the method"'):
            status, text = self.stestr(True, crash)
            self.assertNotEqual(0, status, text)

    def test_an_interrupt_ends_its_workers(self):
        code = ('import subprocess, sys; worker = subprocess.Popen('
                '[sys.executable, "-c", "import time; time.sleep(100)"]);'
                'print(worker.pid, flush=True); worker.wait()')
        with self.assertRaises(KeyboardInterrupt):
            with stestr_tests.ended_with_us(
                    [sys.executable, '-c', code]) as process:
                worker = int(process.stdout.readline())
                raise KeyboardInterrupt
        end_s = time.monotonic() + 10
        while processes.start_ticks(worker) and time.monotonic() < end_s:
            time.sleep(0.01)
        self.assertIsNone(processes.start_ticks(worker))


class TempestTest(base.TestCase):

    def test_names_with_and_without_attributes(self):
        listed = 'a.b.CTest.test_d[id-2d0c2f7e-5a37,slow]'
        for name in listed, 'a.b.CTest.test_d', 'a.b.CTest':
            self.assertRegex(listed, tempest_run.of(name))
        for name in 'a.b.CTest.test', 'a.b.C', 'b.CTest.test_d':
            self.assertNotRegex(listed, tempest_run.of(name))

    def test_a_run_of_no_test_has_not_passed(self):
        """An expression that matches no test proves nothing."""
        for text, status, passes in (
                (' - Passed: 2', 0, True), (' - Passed: 0', 0, False),
                ("The specified regex doesn't match with anything", 0, False),
                (' - Passed: 1', 1, False)):
            code = f'print({text!r}); raise SystemExit({status})'
            self.assertEqual(passes, quietly(lambda: tempest_run.passes(
                [sys.executable, '-c', code], {}))[0], text)


class UnittestTest(base.TestCase):

    class Unsteady(unittest.TestCase):
        """Tests that fail as often as the list has entries."""

        failures = []

        @classmethod
        def setUpClass(cls):
            super().setUpClass()
            if 'class' in cls.failures:
                cls.failures.remove('class')
                raise AssertionError('class')

        def test_a(self):
            if 'test' in self.failures:
                self.failures.remove('test')
                self.fail('test')

    def run_again(self, *failures):
        self.Unsteady.failures[:] = failures
        return quietly(lambda: unittests.run(
            unittest.defaultTestLoader.loadTestsFromTestCase(
                self.Unsteady))[0])

    def test_tests_and_the_set_up_of_a_class_run_again(self):
        for failures in [], ['test'], ['class']:
            self.assertEqual(len(failures), self.run_again(*failures)[1].count(
                again.MARK))

    def test_what_fails_twice_has_failed(self):
        for failures in ['test', 'test'], ['class', 'class'], [
                'class', 'test']:
            status, text = self.run_again(*failures)
            self.assertEqual(1, status, text)

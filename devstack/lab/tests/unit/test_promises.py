# SPDX-License-Identifier: Apache-2.0
"""A promise without a bound or without its test is a fault."""

import os
import pathlib
import subprocess
from unittest import mock

from clickos_lab import bounds
from clickos_lab.checks import promise_tests
from clickos_lab.checks import promises
from clickos_lab import paths
from clickos_lab.suites import bounds as suite
from tests.unit import base

_RUST = """
#[test]
#[cfg_attr(debug_assertions, ignore = "slow")]
fn frames_pass() {
    bounds::hold("max_lost_frames", 0.0);
}

fn no_test() {}
"""
_PYTHON = """
from tests import helper


class FrameTest:
    def test_frames(self):
        helper.check()
"""
_HELPER = "bounds.hold('min_frames', 7)\n"
_BOUNDS = 'max_lost_frames = 0\nmin_frames = 4_000\n'
_CARGO = '`cargo test -p frames --lib frames`'
_PYTHON_COMMAND = '`python -m unittest tests.test_a`'
_HEADS = list(promises.HEADS)
_LOST = ['frames pass', '0 lost frames (`max_lost_frames`)', '`frames_pass`',
         _CARGO]
_LEAST = ['frames pass', 'at least 4,000 frames (`min_frames`)',
          '`test_frames`, `FrameTest`', _PYTHON_COMMAND]


class PromisesTest(base.TestCase):

    def setUp(self):
        super().setUp()
        patch = mock.patch.object(paths, 'REPO', pathlib.Path(self.folder))
        patch.start()
        self.addCleanup(patch.stop)
        patch = mock.patch.object(bounds, 'FILE', self.folder / 'b.toml')
        patch.start()
        self.addCleanup(patch.stop)
        promise_tests._text.cache_clear()
        self.addCleanup(promise_tests._text.cache_clear)
        for name, text in (
                ('b.toml', _BOUNDS), ('frames/src/a.rs', _RUST),
                ('frames/Cargo.toml', '[package]\nname = "frames"\n'),
                ('devstack/lab/tests/test_a.py', _PYTHON),
                ('devstack/lab/tests/helper.py', _HELPER)):
            file = self.folder / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        subprocess.run(['git', 'init', '-q', self.folder], check=True)

    def problems(self, *rows, plain=()):
        """Return the problems of a page with these rows."""
        text = '\n'.join([
            '| key | unit |', '|---|---|', '| `x` | y |', '',
            _HEADS[0], '|---|---|---|---|',
            *(f'| {" | ".join(row)} |' for row in rows), '',
            _HEADS[1], '|---|---|---|',
            *(f'| {" | ".join(row)} |' for row in plain)])
        page = self.folder / promises.PAGE
        page.parent.mkdir(exist_ok=True)
        page.write_text(text)
        with mock.patch('builtins.print') as printed:
            status = promises.main()
        lines = [call.args[0] for call in printed.call_args_list][:-1]
        self.assertEqual(status, int(bool(lines)))
        return '\n'.join(lines)

    def test_good_rows(self):
        self.assertEqual('', self.problems(_LOST, _LEAST, plain=[
            ['`a \\| b` pass', '`frames_pass`', _CARGO]]))

    def test_bad_cells(self):
        for column, cell, found in (
                (1, 'not one', 'expected "at most NUMBER UNIT (`key`)"'),
                (1, '1 lost frame (`max_lost_frames`)', 'max_lost_frames = 0'),
                (1, 'at least 0 (`max_lost_frames`)', 'expected "at most"'),
                (1, '0 (`max_others`)', 'lacks max_others'),
                (2, '`no_test`', 'no_test does not exist'),
                (2, '`test_frames`', 'does not read max_lost_frames'),
                (2, 'that test', 'no test or no command'),
                (3, '', 'expected 4 cells'),
                (3, '`cargo test -p frames --lib others`', 'does not run'),
                (3, '`cargo test -p others`', 'does not run'),
                (3, '`cargo test -p frames --test it`', 'does not run')):
            row = [*_LOST[:column], cell, *_LOST[column + 1:]]
            with self.subTest(cell):
                self.assertIn(found, self.problems(row, _LEAST))

    def test_a_bound_has_one_row(self):
        self.assertIn('min_frames: 0 rows', self.problems(_LOST))
        self.assertIn('max_lost_frames: 2 rows',
                      self.problems(_LOST, _LOST, _LEAST))

    def test_a_plain_row_has_a_test(self):
        for cells, found in ((['`gone`', _CARGO], 'gone does not exist'),
                             ([_CARGO], 'expected 3 cells'),
                             (['`frames_pass`', '`make soak PARTS=many`'],
                              'does not run frames_pass')):
            self.assertIn(found, self.problems(
                _LOST, _LEAST, plain=[['frames pass', *cells]]))

    def test_a_page_without_a_table(self):
        self.assertIn('rows, expected one', self.problems())

    def test_the_file_of_bounds(self):
        for text, found in (('lost = 1', 'begins with max_ or min_'),
                            ('max_a = "1"', "expected a number, got '1'"),
                            ('max_a = true', 'expected a number, got True')):
            (self.folder / 'b.toml').write_text(text)
            with self.assertRaisesRegex(ValueError, found):
                bounds.read()

    def test_what_holds(self):
        for key, value in (('max_lost_frames', 0), ('min_frames', 4000),
                           ('max_lost_frames', -1), ('min_frames', 4000.5)):
            bounds.hold(key, value)
        for key, value, found in (
                ('max_lost_frames', 1,
                 'max_lost_frames: 1, expected at most 0'),
                ('min_frames', 3, 'min_frames: 3, expected at least 4000')):
            with self.assertRaisesRegex(AssertionError, found):
                bounds.hold(key, value)
        self.assertRaises(KeyError, bounds.hold, 'max_others', 0)


class _Runner:
    """Runs commands that pass or fail as a test with a bound does."""

    def __init__(self, is_held=True, is_void=False, output=None):
        self._status = 0 if is_held else 1
        self._is_void, self._output = is_void, output

    def with_true_bounds(self, command):
        return suite.Done(self._status, '', 1)

    def run(self, command, more=()):
        """Hold the bound of the file that the environment names."""
        if self._is_void:
            return suite.Done(0, '', 1)
        with mock.patch.dict(os.environ, more):
            try:
                bounds.hold('max_lost_frames', 0)
            except AssertionError as error:
                return suite.Done(1, self._output or str(error), 1)
        return suite.Done(0, '', 1)


class OutOfReachTest(base.TestCase):

    def result(self, **how):
        """Return the result of a row whose command ends so."""
        row = promises.Promise(1, 'frames pass', _LOST[1], ['frames_pass'],
                               [_CARGO])
        text = {'max_lost_frames': 0, 'min_frames': 4000}
        with mock.patch('builtins.print'), mock.patch.object(
                bounds, 'FILE', self.folder / 'b.toml'):
            (self.folder / 'b.toml').write_text(_BOUNDS)
            self.assertEqual(text, bounds.read())
            return suite._result(row, _Runner(**how))[0]

    def test_a_bound_that_its_test_reads(self):
        self.assertEqual(suite.NOTICED, self.result())

    def test_a_void_promise(self):
        self.assertEqual('VOID: passes, frames_pass',
                         self.result(is_void=True))

    def test_other_failures(self):
        self.assertEqual('fails with the true bound',
                         self.result(is_held=False))
        self.assertEqual('fails without the name of the bound',
                         self.result(output='no such command'))

    def test_a_lower_bound_out_of_reach(self):
        with mock.patch.object(bounds, 'FILE', self.folder / 'b.toml'):
            (self.folder / 'b.toml').write_text(_BOUNDS)
            with suite.broken('min_frames') as file, mock.patch.dict(
                    os.environ, {bounds.VARIABLE: str(file)}):
                bounds.hold('max_lost_frames', 0)
                self.assertRaisesRegex(
                    AssertionError, 'min_frames: ', bounds.hold,
                    'min_frames', 10 ** 9)

    def test_rows_are_chosen(self):
        quick = [row.key for row in suite._chosen([], False)]
        self.assertIn('max_default_image_kib', quick)
        self.assertNotIn('max_attack_growth_mib', quick)
        every = [row.key for row in suite._chosen([], True)]
        self.assertEqual(set(bounds.read()), set(every))
        self.assertEqual(['max_cosmosd_forks'], [
            row.key for row in suite._chosen(['max_cosmosd_forks'], False)])
        with self.assertRaisesRegex(suite.errors.LabError, 'max_nothing'):
            suite._chosen(['max_nothing'], False)

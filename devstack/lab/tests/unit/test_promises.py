# SPDX-License-Identifier: Apache-2.0
"""A promise without its test is a fault."""

import pathlib
import subprocess
from unittest import mock

from clickos_lab.checks import promises
from clickos_lab import paths
from tests.unit import base

_RUST = """
#[test]
#[cfg_attr(debug_assertions, ignore = "slow")]
fn frames_pass() {}

fn no_test() {}
"""
_PYTHON = """
class FrameTest:
    def test_frames(self):
        self.helper()

    def helper(self):
        pass
"""
_GOOD = ['it runs', '`frames_pass`', '3 s', '0123abc, 2026-11-22', '`run`']


class PromisesTest(base.TestCase):

    def setUp(self):
        super().setUp()
        patch = mock.patch.object(paths, 'REPO', pathlib.Path(self.folder))
        patch.start()
        self.addCleanup(patch.stop)
        (self.folder / 'a.rs').write_text(_RUST)
        (self.folder / 'test_a.py').write_text(_PYTHON)
        self.known = promises.tests(['a.rs', 'test_a.py', 'b.md'])

    def test_what_a_test_is(self):
        self.assertEqual({'frames_pass', 'FrameTest', 'test_frames'},
                         self.known)

    def test_good_rows(self):
        for held in ('`frames_pass`', '`FrameTest`, `test_frames`',
                     '`test_frames`, in release builds', 'untimed',
                     'read by a person'):
            row = [*_GOOD[:1], held, *_GOOD[2:]]
            self.assertIsNone(promises.problem(row, self.known), held)

    def test_bad_rows(self):
        for column, cell, found in (
                (1, '`no_test`', 'no_test does not exist'),
                (1, '`frames_pass`, `gone`', 'gone does not exist'),
                (1, 'that test', 'that test does not exist'),
                (2, '', 'some perhaps empty'),
                (3, 'today', 'got "today"')):
            row = [*_GOOD[:column], cell, *_GOOD[column + 1:]]
            self.assertIn(found, promises.problem(row, self.known))
        self.assertIn('4 cells', promises.problem(_GOOD[:4], self.known))

    def test_the_check_of_a_page(self):
        page = self.folder / promises.PAGE
        page.parent.mkdir()
        subprocess.run(['git', 'init', '-q', self.folder], check=True)
        for held, status in (('`frames_pass`', 0), ('`gone`', 1)):
            page.write_text('\n'.join([
                '| column | content |', '|---|---|', '| `x` | y |', '',
                promises._HEAD, '|---|---|---|---|---|',
                f'| it \\| runs | {held} | 3 s | 0123abc, 2026-11-22 | x |']))
            self.assertEqual(status, promises.main())
        page.write_text('# No table\n')
        self.assertEqual(1, promises.main())

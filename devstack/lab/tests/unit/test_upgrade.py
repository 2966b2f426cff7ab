# SPDX-License-Identifier: Apache-2.0
"""The upgrade of a lab, as far as it needs no lab."""

import contextlib
import io
import os
from unittest import mock

from clickos_client import release

from clickos_lab.config import options
from clickos_lab import errors
from clickos_lab import shell
from clickos_lab.suites import upgrade
from clickos_lab.upgrade import older
from clickos_lab.upgrade import place
from clickos_lab.upgrade import traffic
from clickos_lab import version
from tests.unit import base


class UpgradeTest(base.TestCase):

    def test_requests_without_an_answer_are_lost(self):
        self.assertEqual((0, 0), traffic.judge([1, 2, 3, 4], 2))
        self.assertEqual((0, 0), traffic.judge([], 2))
        lost, silent_s = traffic.judge([1, 2, 5, 6, 8], 2)
        self.assertEqual(3, lost)
        self.assertAlmostEqual(2 * traffic.INTERVAL_S, silent_s)

    def test_an_unknown_order_is_refused_before_anything_is_built(self):
        with mock.patch.object(upgrade.prepare, 'everything',
                               side_effect=AssertionError('builds')), \
                contextlib.redirect_stdout(io.StringIO()) as out:
            self.assertEqual(2, upgrade.main(['host-first', 'bogus']))
        self.assertEqual('error: bogus: no such order; there are '
                         'controllers-first, host-first\n', out.getvalue())

    def test_a_commit_that_is_missing_is_named(self):
        with mock.patch.dict(os.environ, {older.VARIABLE: '0.0.1:0000000'}):
            found = older.Older(self.folder)
        self.assertEqual('0.0.1', found.version)
        with self.assertRaisesRegex(errors.LabError,
                                    r'0000000 \(0\.0\.1\): not in this'):
            found.ensure(self.state)

    def test_an_upgrade_begins_with_the_release_before(self):
        self.assertTrue(release.are_neighbors(older.VERSION,
                                              version.number()))

    def test_configurations_of_another_release(self):
        self.addCleanup(options.use, options.FOLDER)
        folder = self.folder / 'devstack'
        (folder / 'files').mkdir(parents=True)
        (folder / 'defaults').write_text('CLICKOS_SWITCH=${CLICKOS_SWITCH:-'
                                         'other}\n')
        (folder / 'options.conf').write_text(
            '[[agent|FILE]]\n[DEFAULT]\nswitch = $CLICKOS_SWITCH\n')
        (folder / 'files/valed.toml').write_text('$CLICKOS_SWITCH')
        options.use(folder)
        self.assertEqual({'CLICKOS_SWITCH': 'other'}, options.DEFAULTS)
        self.assertEqual({'DEFAULT': {'switch': 'other'}},
                         options.of('agent'))
        self.assertEqual('other', options.file('valed.toml'))
        self.assertEqual(self.folder / 'x', options.source('x'))
        options.use(options.FOLDER)
        self.assertIn('CLICKOS_IMAGE', options.DEFAULTS)

    def test_the_older_packages_come_before_those_of_the_environment(self):
        state = place.State(self.state)
        self.assertNotIn('PYTHONPATH', shell.environment(self.state))
        found = shell.environment(state)['PYTHONPATH']
        self.assertEqual(str(state.python[place.CONTROLLERS]), found)
        for text in ('old', 'new'):
            (self.folder / text).mkdir()
            (self.folder / text / f'{text}.py').touch()
            state.install_python(place.CONTROLLERS, self.folder / text)
        self.assertEqual(['new.py'], os.listdir(found))

    def test_programs_are_replaced_while_they_run(self):
        state = place.State(self.state)
        for text in ('old', 'new'):
            source = self.folder / text
            source.mkdir()
            for name in older.PROGRAMS:
                (source / name).write_text(text)
        state.install(self.folder / 'old')
        with open(state.binary('valed')) as running:
            state.install(self.folder / 'new')
            self.assertEqual('old', running.read())
        self.assertEqual('new', state.binary('valed').read_text())

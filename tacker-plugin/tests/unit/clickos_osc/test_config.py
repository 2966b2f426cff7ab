# SPDX-License-Identifier: Apache-2.0
"""openstack clickos config show | check | diff | replace."""

import argparse
import contextlib
import io
import json
import logging
import os
import pathlib
import tempfile
import types

from osc_lib import exceptions

from clickos_osc.v1 import config
from clickos_osc.v1 import state
from tests.unit.clickos_osc import base

RUNNING = 'c :: Counter;\nIdle -> c -> Discard;\n'
#: Refuses what names the class Wrong, as click-check does.
PROGRAM = """#!/bin/sh
grep -q Crash && exit 3
case "$*" in *"--vifs 2"*) exit 0;; esac
echo "<stdin>:2:6: w :: Wrong: unknown class" >&2
echo "some message" >&2
exit 1
"""


class ConfigTest(base.CommandTestCase):
    """A guest with a configuration, and a folder for files."""

    def setUp(self):
        super().setUp()
        self.agent.guests[self.server_id]['config'] = RUNNING
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def file(self, text):
        """Return the path of a file with a text."""
        path = self.folder / 'fw.click'
        path.write_text(text)
        return str(path)

    def run_whole(self, command, *arguments):
        """Run a command as cliff does; return its status and output."""
        shown = io.StringIO()
        app = types.SimpleNamespace(stdout=shown,
                                    client_manager=self.manager)
        instance = command(app, argparse.Namespace())
        parsed = instance.get_parser('openstack').parse_args(arguments)
        with contextlib.redirect_stdout(shown):
            return instance.run(parsed), shown.getvalue()


class ShowTest(ConfigTest):

    def test_of_a_server_and_of_a_vnf(self):
        for names in (['my-fw'], ['--vnf', self.vnf_id]):
            self.assertEqual(RUNNING, self.run_command(
                config.ShowConfig, *names)[1])


class DiffTest(ConfigTest):

    def diff(self, text):
        """Compare the guest's configuration with a text."""
        return self.run_whole(config.DiffConfig, 'my-fw', self.file(text))

    def test_the_same(self):
        self.assertEqual((0, ''), self.diff(RUNNING))

    def test_different(self):
        status, shown = self.diff(RUNNING.replace('Idle', 'Id\x1ble'))
        self.assertEqual(1, status)
        self.assertEqual(
            ['--- my-fw', f'+++ {self.folder}/fw.click', '@@ -1,2 +1,2 @@',
             ' c :: Counter;', '-Idle -> c -> Discard;',
             '+Id\\x1ble -> c -> Discard;'], shown.splitlines())

    def test_not_comparable(self):
        self.use_log()
        for arguments in (('my-fw', '/nonexistent'),
                          ('--vnf', 'x', self.file(RUNNING))):
            self.assertEqual((2, ''), self.run_whole(config.DiffConfig,
                                                     *arguments))
        self.assertIn('/nonexistent: No such file', self.log.getvalue())

    def use_log(self):
        """Collect what is logged."""
        self.log = io.StringIO()
        catcher = logging.StreamHandler(self.log)
        config.LOG.addHandler(catcher)
        self.addCleanup(config.LOG.removeHandler, catcher)


class ReplaceTest(ConfigTest):

    def replace(self, text, *options):
        """Replace the guest's configuration by a text."""
        return self.run_command(config.ReplaceConfig, *options, 'my-fw',
                                self.file(text))[1]

    def test_accepted(self):
        self.assertEqual('my-fw: replaced, revision 1\n',
                         self.replace('Idle;'))
        self.assertEqual({'revision': 2},
                         json.loads(self.replace('Idle; ', '-f', 'json')))
        (_, rows), _ = self.run_command(state.ShowState, 'my-fw')
        self.assertEqual([('(configuration)', 'fw.click')], rows)
        self.assertIn('my-fw: configuration and 0 handler writes forgotten',
                      self.run_command(state.ClearState, 'my-fw')[1])
        self.assertEqual([], self.run_command(state.ShowState,
                                              'my-fw')[0][1])

    def test_the_guests_error_has_line_and_column(self):
        with self.assertRaisesRegex(
                exceptions.CommandError,
                r'fw.click:1:1: w :: Wrong: .* \(HTTP 400, bad-config\)'):
            self.replace('w :: Wrong')

    def test_a_vnf_is_refused(self):
        with self.assertRaisesRegex(exceptions.CommandError,
                                    r'belongs to the descriptor.*HTTP 409'):
            self.run_command(config.ReplaceConfig, '--vnf', self.vnf_id,
                             self.file('Idle;'))

    def test_names(self):
        for path, name in (('/a/b.click', 'b.click'), ('-', 'config'),
                           ('a b\u00fc', 'a_b_'), ('x' * 70, 'x' * 64)):
            self.assertEqual(name, config._name(path))


class CheckTest(ConfigTest):

    def setUp(self):
        super().setUp()
        self.program = str(self.folder / 'click-check')
        pathlib.Path(self.program).write_text(PROGRAM)
        os.chmod(self.program, 0o700)

    def check(self, text, *options):
        """Check a configuration."""
        return self.run_whole(
            config.CheckConfig, '--program', self.program, '-f', 'value',
            *options, self.file(text))

    def test_right(self):
        self.assertEqual((0, ''), self.check(
            'Idle', '--vifs', '2', '--define', 'A=1'))

    def test_faults_have_line_and_column(self):
        status, shown = self.check('Idle;\nw :: Wrong')
        self.assertEqual(1, status)
        path = self.folder / 'fw.click'
        self.assertEqual([f'{path} 2 6 w :: Wrong: unknown class',
                          f'{path}   some message'], shown.splitlines())

    def test_a_program_that_fails(self):
        with self.assertRaisesRegex(exceptions.CommandError, 'status 3'):
            self.check('Crash')

    def test_a_program_that_is_missing(self):
        os.remove(self.program)
        with self.assertRaisesRegex(exceptions.CommandError,
                                    'No such file.*make click'):
            self.check('Idle')

    def test_a_wrong_definition(self):
        with self.assertRaisesRegex(exceptions.CommandError, 'NAME=VALUE'):
            self.check('Idle', '--define=--file=x')

    def test_a_file_that_is_no_text(self):
        path = self.folder / 'raw'
        path.write_bytes(b'a\xff')
        with self.assertRaisesRegex(exceptions.CommandError, 'byte 1'):
            self.run_whole(config.CheckConfig, str(path))

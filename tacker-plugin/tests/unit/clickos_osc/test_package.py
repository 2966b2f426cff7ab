# SPDX-License-Identifier: Apache-2.0
"""openstack clickos package check."""

import argparse
import contextlib
import io
import types

from clickos_osc import files
from clickos_osc.v1 import package
from tests.unit.tacker_clickos import base
from tests.unit.tacker_clickos import test_package

CLICK = 'firewall.click'
PROGRAM = f'#!/bin/sh\necho "{CLICK}:7:5: fw :: Wrong" >&2\nexit 1\n'


class CheckTest(base.TestCase):

    def check(self, content, *options):
        """Return exit status and output of the command."""
        path = self.package / 'x.csar'
        path.write_bytes(content)
        shown = io.StringIO()
        app = types.SimpleNamespace(stdout=shown, client_manager=None)
        command = package.CheckPackage(app, argparse.Namespace())
        arguments = command.get_parser('openstack').parse_args(
            [str(path), *options])
        with contextlib.redirect_stdout(shown):
            return command.run(arguments), shown.getvalue()

    def test_a_right_package(self):
        status, _shown = self.check(
            test_package.csar(test_package.files()), '-f', 'json')
        self.assertEqual(0, status)

    def test_faults_have_file_and_line(self):
        content = test_package.files()
        name = test_package.VNFD
        content[name] = content[name].replace(b'fw.config', b'7')
        status, shown = self.check(test_package.csar(content), '-f', 'value')
        self.assertEqual(1, status)
        self.assertRegex(shown, r"\A%s [0-9]+ VDU1: .* 7 is not a name"
                         % name)

    def test_click(self):
        content = test_package.csar(test_package.files())
        program = self.package / 'click-check'
        options = ('--click', '--program', str(program), '-f', 'value')
        program.write_text(PROGRAM)
        program.chmod(0o700)
        status, shown = self.check(content, *options)
        self.assertEqual((1, f'{CLICK} 7 VDU1: column 5: fw :: Wrong\n'),
                         (status, shown))
        program.write_text('#!/bin/sh\ncat > "$0.seen"\n')
        self.assertEqual((0, ''), self.check(content, *options))
        seen = (self.package / 'click-check.seen').read_text()
        for part in ('$LEFT_VIF 0', '$RIGHT_IP 192.0.2.17', f'# 1 "{CLICK}"',
                     'fw :: IPFilter'):
            self.assertIn(part, seen)

    def test_click_after_the_other_faults(self):
        content = test_package.files()
        name = test_package.VNFD
        content[name] = content[name].replace(b'fw.config', b'7')
        status, shown = self.check(test_package.csar(content), '--click',
                                   '--program', '/nonexistent')
        self.assertEqual(1, status)
        self.assertIn('is not a name', ' '.join(shown.split()))

    def test_a_file_that_is_missing(self):
        with self.assertRaisesRegex(Exception, 'No such file'):
            files.content('/nonexistent', 1, 'x')

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

    def test_a_file_that_is_missing(self):
        with self.assertRaisesRegex(Exception, 'No such file'):
            files.content('/nonexistent', 1, 'x')

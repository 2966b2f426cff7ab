# SPDX-License-Identifier: Apache-2.0
"""Commands, as a tenant types them."""

import pathlib
import tempfile

from clickos_tempest_plugin.common import cli
from clickos_tempest_plugin.tests import base


class CommandLine(base.ClickOSTest):
    """Runs the command with the credentials of the tenant."""

    def openstack(self, *arguments):
        """Run openstack clickos; return the ended process."""
        return cli.openstack(self.os_primary, 'clickos', *arguments)

    def assertEnds(self, status, done):
        """Check the exit status of a command; return its output."""
        self.assertEqual(status, done.returncode, done.stderr)
        return done.stdout

    def file(self, name, text):
        """Return the path of a file with a text."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = pathlib.Path(folder.name) / name
        path.write_text(text)
        return str(path)

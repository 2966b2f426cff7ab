# SPDX-License-Identifier: Apache-2.0
"""What tests of the accounts share."""

import os

from clickos_lab import accounts
from clickos_lab import settings
from tests.unit import base


class AccountsCase(base.TestCase):
    """A state folder that the accounts enter, with their folders."""

    def setUp(self):
        super().setUp()
        os.umask(0o077)     # as the lab
        self.state.root.chmod(0o711)
        self.state.run.mkdir()
        self.state.run.chmod(0o711)
        self.settings = settings.Settings.load(self.state)
        accounts.make_folders(self.state, self.settings)
        accounts.write_passwd(self.state, self.settings)

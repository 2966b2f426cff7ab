# SPDX-License-Identifier: Apache-2.0
"""What the tests share."""

import os
import pathlib
import shutil
import tempfile
import unittest

from clickos_lab import paths


class TestCase(unittest.TestCase):
    """A test with a state folder of its own."""

    def setUp(self):
        super().setUp()
        folder = tempfile.mkdtemp(prefix='cl')
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        self.folder = pathlib.Path(folder)
        self.state = paths.State(self.folder / 'state')
        self.state.create()
        mask = os.umask(0o022)
        self.addCleanup(os.umask, mask)

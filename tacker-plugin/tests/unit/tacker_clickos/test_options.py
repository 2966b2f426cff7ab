# SPDX-License-Identifier: Apache-2.0
"""Options of tacker.conf."""

import pathlib
import tempfile
import unittest

from oslo_config import cfg

from tacker_clickos import conf


class OptionsTest(unittest.TestCase):

    def test_former_names(self):
        """Files of the release before 1.0 are read as they are."""
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, 'tacker.conf')
            path.write_text('[clickos]\norphan_timeout = 17\n')
            found = conf.register(cfg.ConfigOpts())
            found(['--config-file', str(path)], project='test')
        self.assertEqual(17, found.clickos.stale_operation_timeout)

# SPDX-License-Identifier: Apache-2.0
"""The suite that deploys the catalog has a test for each folder."""

from clickos_lab import paths
from clickos_lab.suites import deployed
from tests.unit import base


class DeployedTest(base.TestCase):

    def names(self, *wanted):
        return [test.id().rpartition('.test_')[2]
                for test in deployed.tests(None, wanted)]

    def test_each_folder_with_a_descriptor_is_deployed(self):
        folders = (paths.REPO / 'vnfd-templates').glob('*/scenario.py')
        names = sorted(folder.parent.name for folder in folders)
        self.assertGreaterEqual(len(names), 19)
        self.assertEqual(names, self.names())

    def test_some(self):
        self.assertEqual(['wire'], self.names('wire'))

# SPDX-License-Identifier: Apache-2.0
"""What a test's end says of a VNF that cannot be removed."""

import sys
import unittest
from unittest import mock

from clickos_lab import paths


class CleanupTest(unittest.TestCase):

    def setUp(self):
        super().setUp()
        sys.path.insert(0, str(paths.REPO / 'tempest-tests'))
        self.addCleanup(sys.path.remove, sys.path[0])
        from clickos_tempest_plugin.common import tenant
        self.tenant = mock.create_autospec(tenant.Tenant, instance=True)
        self.tenant.tacker = mock.Mock()
        self.tenant._operations = {}
        self.remove = lambda: tenant.Tenant._remove_vnf(self.tenant, 'vnf')

    def test_the_reason_of_a_failed_terminate_is_told(self):
        self.tenant.tacker.show_vnf.return_value = {
            'instantiationState': 'INSTANTIATED'}
        self.tenant.operate.return_value = {
            'operation': 'TERMINATE', 'operationState': 'FAILED_TEMP',
            'error': {'detail': 'a chain has the port'}}
        self.tenant.tacker.delete_vnf.side_effect = RuntimeError('HTTP 409')
        with self.assertRaisesRegex(Exception, 'a chain has the port'):
            self.remove()
        self.assertEqual(3, self.tenant.operate.call_count)

# SPDX-License-Identifier: Apache-2.0
"""Packages of one VNFD id, one after the other."""

import contextlib

from tempest.lib import decorators
from tempest.lib import exceptions

from clickos_tempest_plugin.common import csar
from clickos_tempest_plugin.tests import base


class VnfdIdsTest(base.ClickOSTest):

    @decorators.attr(type='slow')
    @decorators.idempotent_id('2c5d8a53-7d2e-4f4f-8a59-0d9b6e2d7c11')
    def test_an_id_is_free_once_its_package_is_deleted(self):
        package, ids = csar.firewall(), set()
        for _again in range(2):
            with contextlib.ExitStack() as undo:
                vnfd_id = self.tenant.onboard(package, undo.callback)
                self.tenant.create_vnf(vnfd_id, undo.callback)
                ids.add(vnfd_id)
                refused = self.assertRaises(
                    exceptions.Conflict, self.tenant.onboard, package,
                    self.addCleanup)
                self.assertRegex(str(refused), f'VNFD id {vnfd_id}: package'
                                 ' [0-9a-f-]{36} has it; delete that')
        self.assertEqual(1, len(ids))

# SPDX-License-Identifier: Apache-2.0
"""Packages of one VNFD id, one after the other."""

import contextlib

from tempest.lib import decorators
from tempest.lib import exceptions

from clickos_tempest_plugin.common import csar
from clickos_tempest_plugin.common import tenant
from clickos_tempest_plugin.tests import base
from clickos_tempest_plugin.tests.scenario import case


class VnfdIdsTest(base.ClickOSTest):

    credentials = ['primary', 'admin', 'alt']

    @decorators.attr(type='slow')
    @decorators.idempotent_id('7e0c4a0e-6a5c-4a1e-9d0f-5c4b7d2a8f13')
    def test_two_projects_have_the_package_of_a_vendor(self):
        package, found = csar.firewall(), []
        other = tenant.Tenant(self.os_alt, self.addCleanup, self.image_ref())
        for each in self.tenant, other:
            vnfd_id = each.onboard(package, self.addCleanup)
            vnf_id = each.create_vnf(vnfd_id, self.addCleanup)
            self.assertEqual(vnfd_id, each.tacker.show_vnf(vnf_id)['vnfdId'])
            tenant.completed(each.instantiate(vnf_id, case.OPEN))
            found.append((each, vnf_id, vnfd_id))
        self.assertEqual(1, len({vnfd_id for _, _, vnfd_id in found}))
        for each, vnf_id, _vnfd_id in found:
            tenant.completed(each.operate(vnf_id, 'heal', cause='test'))
            each.terminate(vnf_id)

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

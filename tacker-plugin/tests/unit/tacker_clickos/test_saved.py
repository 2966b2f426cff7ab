# SPDX-License-Identifier: Apache-2.0
"""The VNF that Tacker knows before a guest is made, in a database."""

from tacker.db import api as db_api
from tacker.db.db_sqlalchemy import models
from tacker import objects

from tacker_clickos import infra_driver
from tacker_clickos import resources
from tests.unit.tacker_clickos import base
from tests.unit.tacker_clickos import database


class SavedTest(database.DatabaseTestCase):

    def setUp(self):
        super().setUp()
        SavedTest._insert(self.context)

    @staticmethod
    @db_api.context_manager.writer
    def _insert(context):
        context.session.add(models.VnfInstance(
            id=base.VNF_ID, vnf_instance_name='fw', tenant_id='t',
            instantiation_state='NOT_INSTANTIATED', vnfd_id='d',
            vnf_provider='p', vnf_product_name='n', vnf_pkg_id=base.VIM_ID,
            vnf_software_version='1', vnfd_version='1',
            vim_connection_info=[]))

    def read(self):
        return objects.VnfInstance.get_by_id(self.context, base.VNF_ID)

    def test_instance_id_is_there_while_guests_are_made(self):
        vnf = self.read()
        vnf.instantiated_vnf_info = base.vnf_instance(
            guests=2).instantiated_vnf_info
        resources.name_vnfcs(vnf.instantiated_vnf_info)
        known = infra_driver.ClickOSInfraDriver._known_to_tacker
        with self.assertRaises(KeyError), known(vnf):
            info = self.read().instantiated_vnf_info
            self.assertEqual('clickos-' + base.VNF_ID, info.instance_id)
            self.assertEqual([{'name': 'VDU1-0'}, {'name': 'VDU1-1'}],
                             [each.metadata for each in
                              vnf.instantiated_vnf_info.vnfc_resource_info])
            raise KeyError
        self.assertIsNone(self.read().instantiated_vnf_info.instance_id)

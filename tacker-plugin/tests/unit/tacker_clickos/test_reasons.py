# SPDX-License-Identifier: Apache-2.0
"""What a tenant reads of a failed heal, through Tacker's own driver."""

from unittest import mock

from tacker.common import exceptions
from tacker.vnflcm import utils as vnflcm_utils
from tacker.vnflcm import vnflcm_driver

from tacker_clickos import reasons
from tests.unit.tacker_clickos import base

REASON = 'fw.click:3:5: unknown class'


class HealTest(base.TestCase):

    def setUp(self):
        super().setUp()
        self.addCleanup(setattr, exceptions, 'VnfHealFailed',
                        exceptions.VnfHealFailed)
        reasons.install()
        for name in '_get_vim', '_get_vnfd_dict', \
                '_build_instantiated_vnf_info':
            patch = mock.patch.object(vnflcm_utils, name, autospec=True,
                                      return_value={'vim_id': 'v'})
            patch.start()
            self.addCleanup(patch.stop)
        for name in 'VimConnectionInfo', 'InstantiateVnfRequest':
            patch = mock.patch.object(vnflcm_driver.objects, name)
            patch.start()
            self.addCleanup(patch.stop)
        self.driver = object.__new__(vnflcm_driver.VnfLcmDriver)
        for name in ('_vnf_manager', '_mgmt_manager', '_load_vnf_interface',
                     '_vnf_instance_update', '_delete_vnf_instance_resources',
                     '_instantiate_vnf'):
            setattr(self.driver, name, mock.Mock())

    def failed(self, vnfc_ids):
        with self.assertRaises(exceptions.VnfHealFailed) as failed:
            self.driver.heal_vnf(
                mock.Mock(), mock.Mock(id='x'), {'before_error_point': 0},
                mock.Mock(vnfc_instance_id=vnfc_ids))
        return str(failed.exception)

    def test_a_failed_heal_of_guests_is_told_once(self):
        self.driver._vnf_manager.invoke.side_effect = ValueError(REASON)
        self.assertEqual('Heal Vnf failed for vnf x, error: ' + REASON,
                         self.failed(['g']))

    def test_a_failed_heal_of_a_vnf_is_told_once(self):
        self.driver._instantiate_vnf.side_effect = (
            exceptions.VnfInstantiationFailed(id='x', error=REASON))
        self.assertEqual('Heal Vnf failed for vnf x, error: ' + REASON,
                         self.failed([]))

    def test_a_reason_that_only_resembles_it_remains(self):
        told = 'Heal Vnf failed for vnf y, error: ' + REASON
        self.assertIn(told, str(reasons.HealFailed(id='x', error=told)))

# SPDX-License-Identifier: Apache-2.0
"""What failed operations left is removed when the VIM answers again."""

from unittest import mock

from openstack import exceptions as sdk_exceptions
from oslo_utils import timeutils
from tacker.db.db_sqlalchemy import models
from tacker.vnflcm import utils as vnflcm_utils

from tacker_clickos import leftovers
from tacker_clickos import troubles
from tests.unit.tacker_clickos import base
from tests.unit.tacker_clickos import database

_OTHER = '11111111-52e4-4c1e-9d33-4cf1b7a10a55'


class StraysTest(database.DatabaseTestCase):

    def setUp(self):
        super().setUp()
        self.get_vim = self.patch(
            vnflcm_utils, 'get_vim',
            return_value={'access_info': dict(base.ACCESS)})
        self.lock = mock.Mock(spec_set=('acquire', 'release'))
        self.lock.acquire.return_value = True
        self.troubles = troubles.Troubles()
        self.leftovers = leftovers.Leftovers()
        self.patch(self.leftovers._coordinator, 'start')
        self.patch(self.leftovers._coordinator, 'get_lock',
                   return_value=self.lock)
        self.insert()

    def insert(self, vnf_id=base.VNF_ID, state='FAILED_TEMP', age_s=5,
               **values):
        self.make_vnf(vnf_id, **{'instantiation_state': 'NOT_INSTANTIATED',
                                 **values})
        self.make_operation('INSTANTIATE', state, age_s, vnf_id)

    def make_guest(self, vnf_id=base.VNF_ID):
        self.cloud.compute.create_server(
            name='VDU1-0-' + vnf_id, metadata={'clickos_vnf': vnf_id})
        self.cloud.network.create_port(
            name='VDU1-0-left', network_id=base.LEFT_NET,
            description='clickos-vnf:' + vnf_id)

    def run_once(self):
        self.leftovers.run_once(self.context, self.troubles)

    def left(self):
        return len(self.cloud.servers), len(self.cloud.ports)

    def test_a_failed_instantiation_leaves_nothing(self):
        self.make_guest()
        self.run_once()
        self.assertEqual((0, 0), self.left())
        self.lock.release.assert_called_once_with()

    def test_the_vim_of_the_vnf_is_asked(self):
        self.make_guest()
        self.run_once()
        self.assertEqual([base.VIM_ID], [
            each.vim_id for each in self.get_vim.call_args.args[1]])

    def test_a_vnf_that_had_no_vim_yet(self):
        self.insert(vnf_id=_OTHER, vims=[])
        self.run_once()
        self.assertEqual(1, self.get_vim.call_count)

    def test_it_tries_again_while_nova_is_away(self):
        self.make_guest()
        away = mock.Mock(side_effect=sdk_exceptions.HttpException('away'))
        real = self.cloud.compute.servers.side_effect
        self.cloud.compute.servers.side_effect = away
        with self.assertLogs('tacker_clickos.troubles', 'WARNING') as logs:
            self.run_once()
            self.run_once()
        self.assertEqual(1, len(logs.records))
        self.assertIn('sweep of VNF %s' % base.VNF_ID, logs.output[0])
        self.assertEqual((1, 1), self.left())
        self.cloud.compute.servers.side_effect = real
        self.run_once()
        self.assertEqual((0, 0), self.left())

    def test_one_vim_that_is_away_hides_no_other(self):
        self.insert(vnf_id=_OTHER)
        self.make_guest(_OTHER)
        real = self.cloud.compute.servers.side_effect

        def servers(name=None):
            if name == base.VNF_ID:
                raise sdk_exceptions.HttpException('away')
            return real(name)
        self.cloud.compute.servers.side_effect = servers
        self.run_once()
        self.assertEqual((0, 0), self.left())

    def test_one_row_that_cannot_be_read_hides_no_other(self):
        self.insert(vnf_id=_OTHER)
        self.make_guest(_OTHER)
        self.spoil(models.VnfInstance, 'vim_connection_info', base.VNF_ID)
        self.run_once()
        self.assertEqual((0, 0), self.left())
        self.assertEqual(1, troubles.REGISTRY.get_sample_value(
            'clickos_tacker_failing', {'kind': 'sweep'}))

    def test_each_failure_is_looked_at_once(self):
        self.run_once()
        self.make_guest()       # not by an operation of Tacker
        self.run_once()
        self.assertEqual((1, 1), self.left())

    def test_a_retry_that_fails_is_a_new_failure(self):
        self.run_once()
        self.make_guest()
        self._again()
        self.run_once()
        self.assertEqual((0, 0), self.left())

    def _again(self):
        self.change(models.VnfLcmOpOccs,
                    state_entered_time=timeutils.utcnow())

    def test_a_vnf_that_a_conductor_works_on_is_left_alone(self):
        self.make_guest()
        self.lock.acquire.return_value = False
        self.run_once()
        self.assertEqual((1, 1), self.left())
        self.lock.acquire.return_value = True
        self.run_once()
        self.assertEqual((0, 0), self.left())

    def test_other_vnfs_stay(self):
        for number, values in enumerate((
                {'state': 'COMPLETED'}, {'age_s': 90000},
                {'instantiation_state': 'INSTANTIATED'})):
            vnf_id = str(number) * 8 + base.VNF_ID[8:]
            self.insert(vnf_id=vnf_id, **values)
            self.make_guest(vnf_id)
        self.run_once()
        self.assertEqual((3, 3), self.left())

    def test_a_vnf_that_was_deleted_meanwhile(self):
        self.insert(vnf_id=_OTHER)
        self.change(models.VnfInstance, deleted=True)
        self.make_guest(_OTHER)
        self.run_once()
        self.assertEqual((0, 0), self.left())

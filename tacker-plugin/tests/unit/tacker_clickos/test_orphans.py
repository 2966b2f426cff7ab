# SPDX-License-Identifier: Apache-2.0
"""Operations without a conductor end, and leave nothing behind."""

import datetime
import types
from unittest import mock

from oslo_utils import timeutils
from tacker.db.vnfm import vnfm_db
from tacker import objects
from tacker.vnflcm import utils as vnflcm_utils

from tacker_clickos import guests
from tacker_clickos import orphans
from tests.unit.tacker_clickos import base


class OrphansTest(base.CloudTestCase):

    def setUp(self):
        super().setUp()
        self.vnf = base.vnf_instance(
            vim_connection_info=[base.vim_connection()])
        self.vnf.instantiated_vnf_info.vnfc_resource_info[0].metadata = {
            'name': 'VDU1-0'}
        self.operation = mock.Mock(
            spec_set=('id', 'vnf_instance_id', 'operation', 'error', 'save',
                      'operation_state', 'state_entered_time',
                      'error_point'),
            id='op', error_point=0, vnf_instance_id=base.VNF_ID,
            operation='INSTANTIATE',
            operation_state='PROCESSING',
            state_entered_time=timeutils.utcnow() - datetime.timedelta(
                seconds=61))
        self.patch(objects.VnfLcmOpOcc, 'get_by_id',
                   return_value=self.operation)
        self.patch(objects.VnfInstance, 'get_by_id', return_value=self.vnf)
        self.patch(vnflcm_utils, 'get_vim',
                   return_value={'access_info': dict(base.ACCESS)})
        self.patch(orphans, '_stale', return_value=[('op', base.VNF_ID)])
        self.end_task = self.patch(orphans.rows, 'end_task')
        self.lost = self.patch(orphans.rows, 'lost_retries', return_value=[])
        self.end_retry = self.patch(orphans.rows, 'end_lost_retry')
        self.status = self.patch(vnfm_db.VNFMPluginDb,
                                 'update_vnf_cancel_status')
        self.lock = mock.Mock(spec_set=('acquire', 'release'))
        self.lock.acquire.return_value = True
        self.orphans = orphans.Orphans()
        self.patch(self.orphans._coordinator, 'start')
        self.patch(self.orphans._coordinator, 'get_lock',
                   return_value=self.lock)

    def make_guests(self, *names):
        for name in names:
            self.cloud.compute.create_server(
                name='%s-%s' % (name, base.VNF_ID),
                metadata={'clickos_vnf': base.VNF_ID})
            self.cloud.network.create_port(
                name=name + '-left', network_id=base.LEFT_NET,
                description='clickos-vnf:' + base.VNF_ID)

    def names(self):
        return ([server.name[:6] for server in self.cloud.servers.values()],
                [port.name for port in self.cloud.ports.values()])

    def look(self):
        self.orphans.look(mock.sentinel.context)

    def test_an_instantiation_leaves_nothing(self):
        self.make_guests('VDU1-0')
        self.look()
        self.assertEqual(([], []), self.names())
        self.assertEqual('FAILED_TEMP', self.operation.operation_state)
        self.assertEqual(1, self.operation.error_point)     # else no retry
        self.assertIn('died', self.operation.error.detail)
        self.operation.save.assert_called_once_with()
        self.end_task.assert_called_once_with(mock.ANY, base.VNF_ID)
        self.assertEqual(base.VNF_ID, self.status.call_args.args[2])
        self.lock.release.assert_called_once_with()

    def test_a_scaling_keeps_what_tacker_knows(self):
        self.operation.operation = 'SCALE'
        self.make_guests('VDU1-0', 'VDU1-1')
        self.look()
        self.assertEqual((['VDU1-0'], ['VDU1-0-left']), self.names())

    def test_a_heal_removes_nothing(self):
        self.operation.operation = 'HEAL'
        self.make_guests('VDU1-0', 'VDU1-1')
        self.look()
        self.assertEqual(2, len(self.cloud.servers))
        self.assertEqual('FAILED_TEMP', self.operation.operation_state)

    def test_a_locked_vnf_has_a_conductor(self):
        self.lock.acquire.return_value = False
        self.look()
        self.assertEqual('PROCESSING', self.operation.operation_state)
        self.assertFalse(self.lock.release.called)

    def test_a_lost_retry_ends_unless_a_conductor_works(self):
        self.operation.operation_state = 'COMPLETED'
        self.lost.return_value = [base.VNF_ID]
        self.look()
        before = self.lost.call_args.args[1]
        self.assertGreater(timeutils.utcnow() - before,
                           datetime.timedelta(seconds=599))
        self.end_retry.assert_called_once_with(mock.ANY, base.VNF_ID, before)
        self.lock.acquire.return_value = False
        self.look()
        self.end_retry.assert_called_once()

    def test_an_operation_that_went_on_meanwhile_is_left_alone(self):
        for change in ({'operation_state': 'COMPLETED'},
                       {'state_entered_time': timeutils.utcnow()}):
            self.operation.configure_mock(**change)
            self.look()
        self.assertEqual('COMPLETED', self.operation.operation_state)
        self.assertFalse(self.operation.save.called)

    def test_a_vim_that_is_away_is_asked_again(self):
        with mock.patch.object(guests.Guests, 'sweep', autospec=True,
                               side_effect=RuntimeError('away')):
            self.assertRaises(RuntimeError, self.look)
        self.assertEqual('PROCESSING', self.operation.operation_state)
        self.lock.release.assert_called_once_with()
        self.look()
        self.assertEqual('FAILED_TEMP', self.operation.operation_state)

    def test_what_may_wait_in_a_queue_gets_more_time(self):
        for operation, operation_state, age_s, stale in (
                ('HEAL', 'PROCESSING', 61, True),
                ('HEAL', 'PROCESSING', 59, False),
                ('HEAL', 'STARTING', 599, False),
                ('HEAL', 'STARTING', 601, True),
                ('INSTANTIATE', 'ROLLING_BACK', 61, True),
                ('MODIFY_INFO', 'PROCESSING', 599, False)):
            found = types.SimpleNamespace(
                operation=operation, operation_state=operation_state,
                state_entered_time=timeutils.utcnow() - datetime.timedelta(
                    seconds=age_s))
            self.assertEqual(stale, orphans.is_stale(found))

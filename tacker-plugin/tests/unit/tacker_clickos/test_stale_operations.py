# SPDX-License-Identifier: Apache-2.0
"""Operations without a conductor end, and leave nothing behind."""

import datetime
import json
import types
from unittest import mock

from oslo_utils import timeutils
from tacker.db.db_sqlalchemy import models
from tacker.db.vnfm import vnfm_db
from tacker.vnflcm import utils as vnflcm_utils

from tacker_clickos import guests
from tacker_clickos import stale_operations
from tacker_clickos import troubles
from tests.unit.tacker_clickos import base
from tests.unit.tacker_clickos import database

_OTHER = '11111111-52e4-4c1e-9d33-4cf1b7a10a55'
#: how Tacker's older table says that an operation is under way
_PENDING = {'INSTANTIATE': 'PENDING_INSTANTIATE', 'HEAL': 'PENDING_HEAL',
            'SCALE': 'PENDING_SCALE_OUT', 'TERMINATE': 'PENDING_TERMINATE',
            'CHANGE_EXT_CONN': 'PENDING_CHANGE_EXT_CONN',
            'MODIFY_INFO': 'ACTIVE'}


class OrphansTest(database.DatabaseTestCase):

    def setUp(self):
        super().setUp()
        self.patch(vnflcm_utils, 'get_vim',
                   return_value={'access_info': dict(base.ACCESS)})
        self.patch(vnflcm_utils, 'get_vnf_package_path',
                   return_value=str(self.package))
        self.lock = mock.Mock(spec_set=('acquire', 'release'))
        self.lock.acquire.return_value = True
        self.stale_operations = stale_operations.StaleOperations()
        self.patch(self.stale_operations._coordinator, 'start')
        self.patch(self.stale_operations._coordinator, 'get_lock',
                   return_value=self.lock)
        self.troubles = troubles.Troubles()

    def begin(self, operation, vnf_id=base.VNF_ID, age_s=601):
        self.make_vnf(vnf_id, _PENDING[operation], task_state='BUSY')
        self.make_operation(operation, 'PROCESSING', age_s, vnf_id)

    def make_guests(self, *names, vnf_id=base.VNF_ID):
        for name in names:
            self.cloud.compute.create_server(
                name='%s-%s' % (name, vnf_id),
                metadata={'clickos_vnf': vnf_id})
            self.cloud.network.create_port(
                name=name + '-left', network_id=base.LEFT_NET,
                description='clickos-vnf:' + vnf_id)

    def names(self):
        return ([server.name[:6] for server in self.cloud.servers.values()],
                [port.name for port in self.cloud.ports.values()])

    def run_once(self):
        self.stale_operations.run_once(self.context, self.troubles)

    def failing(self, kind='operation'):
        return troubles.REGISTRY.get_sample_value(
            'clickos_tacker_failing', {'kind': kind})

    def test_each_kind_of_operation_can_be_ended_by_its_user(self):
        for number, operation in enumerate(_PENDING):
            self.begin(operation, str(number) * 8 + base.VNF_ID[8:])
        self.run_once()
        for number, operation in enumerate(_PENDING):
            vnf_id = str(number) * 8 + base.VNF_ID[8:]
            ended = self.operation(vnf_id)
            self.assertEqual('FAILED_TEMP', ended.operation_state, operation)
            self.assertIn('died', ended.error.detail)
            self.assertEqual(1, ended.error_point)      # else no retry
            # Tacker's `fail` looks for ERROR, its other verbs for no task.
            self.assertEqual('ERROR', self.column(vnfm_db.VNF, 'status',
                                                  vnf_id))
            self.assertIsNone(self.column(models.VnfInstance, 'task_state',
                                          vnf_id))
        self.assertEqual(0, self.failing())
        self.assertEqual(self.lock.acquire.call_count,
                         self.lock.release.call_count)

    def test_an_update_that_ended_can_be_shown(self):
        body = {'metadata': {'a': "it's", 'b': True, 'c': None}}
        for stored, shown in ((str(body), body), ('no dict', {}),
                              (json.dumps(body), body), (None, {}),
                              ('[' * 100000, {})):
            as_json = stale_operations._as_json(stored)
            self.assertEqual(shown, json.loads(as_json))
        self.begin('MODIFY_INFO')
        self.change(models.VnfLcmOpOccs, operation_params=str(body))
        self.run_once()
        self.assertEqual(body, json.loads(self.operation().operation_params))

    def test_the_reason_offers_only_what_tacker_does(self):
        for operation, words, no_words in (
                ('MODIFY_INFO', 'let it fail', 'retry'),
                ('HEAL', 'retry', 'roll'), ('SCALE', 'roll it back', 'ask')):
            text = stale_operations._reason(
                types.SimpleNamespace(operation=operation))
            self.assertIn(words, text)
            self.assertNotIn(no_words, text)

    def test_an_instantiation_leaves_nothing(self):
        self.begin('INSTANTIATE')
        self.make_guests('VDU1-0')
        self.run_once()
        self.assertEqual(([], []), self.names())

    def test_a_scaling_keeps_what_tacker_knows(self):
        self.begin('SCALE')
        self.make_guests('VDU1-0', 'VDU1-1')
        self.run_once()
        self.assertEqual((['VDU1-0'], ['VDU1-0-left']), self.names())

    def test_a_guest_keeps_no_port_of_a_vdu_named_like_it(self):
        self.begin('SCALE')
        self.make_guests('VDU1-0', 'VDU1-0-1')
        self.run_once()
        self.assertEqual((['VDU1-0'], ['VDU1-0-left']), self.names())

    def test_a_heal_removes_nothing(self):
        self.begin('HEAL')
        self.make_guests('VDU1-0', 'VDU1-1')
        self.run_once()
        self.assertEqual(2, len(self.cloud.servers))
        self.assertEqual('FAILED_TEMP', self.operation().operation_state)

    def test_a_locked_vnf_has_a_conductor(self):
        self.begin('HEAL')
        self.lock.acquire.return_value = False
        self.run_once()
        self.assertEqual('PROCESSING', self.operation().operation_state)
        self.assertFalse(self.lock.release.called)

    def test_a_lost_retry_ends_unless_a_conductor_works(self):
        self.make_vnf(task_state='HEALING')
        self.make_operation('HEAL', 'FAILED_TEMP', 700)
        self.change(models.VnfInstance, updated_at=timeutils.utcnow()
                    - datetime.timedelta(seconds=601))
        self.lock.acquire.return_value = False
        self.run_once()
        self.assertEqual('HEALING', self.column(models.VnfInstance,
                                                'task_state'))
        self.lock.acquire.return_value = True
        self.run_once()
        self.assertIsNone(self.column(models.VnfInstance, 'task_state'))

    def test_an_operation_that_went_on_meanwhile_is_left_alone(self):
        self.begin('HEAL')
        for change in ({'operation_state': 'COMPLETED'},
                       {'state_entered_time': timeutils.utcnow()}):
            self.lock.acquire.side_effect = lambda **_named: self.change(
                models.VnfLcmOpOccs, **change) or True
            self.run_once()
        self.assertEqual('COMPLETED', self.operation().operation_state)
        self.assertEqual('PENDING_HEAL', self.column(vnfm_db.VNF, 'status'))

    def test_one_that_cannot_end_stops_no_other_and_is_tried_again(self):
        self.begin('INSTANTIATE')
        self.begin('SCALE', _OTHER)
        real = guests.Guests.sweep
        with mock.patch.object(guests.Guests, 'sweep', autospec=True,
                               side_effect=RuntimeError('away')), \
                self.assertLogs('tacker_clickos.troubles', 'WARNING') as logs:
            self.run_once()
            self.run_once()
        self.assertEqual(real, guests.Guests.sweep)
        self.assertEqual(1, len(logs.records))
        self.assertIn('operation %s: ' % base.VNF_ID, logs.output[0])
        self.assertEqual(1, self.failing())
        self.assertEqual('PROCESSING', self.operation().operation_state)
        self.assertEqual('FAILED_TEMP',
                         self.operation(_OTHER).operation_state)
        self.run_once()
        self.assertEqual('FAILED_TEMP', self.operation().operation_state)
        self.assertEqual(0, self.failing())
        self.assertEqual(self.lock.acquire.call_count,
                         self.lock.release.call_count)

    def test_one_row_that_cannot_be_read_hides_no_other(self):
        self.begin('SCALE', _OTHER)
        self.begin('SCALE')
        self.spoil(models.VnfLcmOpOccs, 'operation_params', _OTHER)
        self.run_once()
        self.assertEqual('FAILED_TEMP', self.operation().operation_state)
        self.assertEqual(1, self.failing())

    def test_an_operation_of_another_release_ends(self):
        self.begin('SCALE')
        self.change(models.VnfLcmOpOccs, operation='FROBNICATE')
        self.run_once()
        self.assertEqual('FAILED_TEMP', self.operation().operation_state)

    def test_one_that_another_ended_is_no_trouble(self):
        self.begin('INSTANTIATE')
        with mock.patch.object(guests.Guests, 'sweep', autospec=True,
                               side_effect=RuntimeError('away')):
            self.run_once()
        self.change(models.VnfLcmOpOccs, operation_state='FAILED')
        self.run_once()
        self.assertEqual(0, self.failing())

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
            self.assertEqual(stale, stale_operations.is_stale(found))

# SPDX-License-Identifier: Apache-2.0
"""What failed operations left is removed when the VIM answers again."""

import datetime
from unittest import mock

from openstack import exceptions as sdk_exceptions
from oslo_db.sqlalchemy import enginefacade
from oslo_utils import timeutils
from tacker import context as tacker_context
from tacker.db import api as db_api
from tacker.db.db_sqlalchemy import models
from tacker.vnflcm import utils as vnflcm_utils

from tacker_clickos import strays
from tests.unit.tacker_clickos import base

_OTHER = '11111111-52e4-4c1e-9d33-4cf1b7a10a55'


class StraysTest(base.CloudTestCase):

    def setUp(self):
        super().setUp()
        database = enginefacade.transaction_context()
        database.configure(connection='sqlite://')
        self.addCleanup(db_api.context_manager.patch_factory(database))
        engine = database.writer.get_engine()
        self.addCleanup(engine.dispose)
        models.VnfInstance.__table__.create(engine)
        models.VnfLcmOpOccs.__table__.create(engine)
        self.context = tacker_context.get_admin_context()
        self.patch(vnflcm_utils, 'get_vim',
                   return_value={'access_info': dict(base.ACCESS)})
        self.lock = mock.Mock(spec_set=('acquire', 'release'))
        self.lock.acquire.return_value = True
        self.strays = strays.Strays()
        self.patch(self.strays._coordinator, 'start')
        self.patch(self.strays._coordinator, 'get_lock',
                   return_value=self.lock)
        self.insert()

    @staticmethod
    @db_api.context_manager.writer
    def _add(context, *rows):
        context.session.add_all(rows)

    def insert(self, vnf_id=base.VNF_ID, state='FAILED_TEMP', age_s=5,
               **values):
        now = timeutils.utcnow()
        entered = now - datetime.timedelta(seconds=age_s)
        StraysTest._add(self.context, models.VnfInstance(**{**dict(
            id=vnf_id, vnf_instance_name='fw', tenant_id='t', vnfd_id='d',
            instantiation_state='NOT_INSTANTIATED', vnf_provider='p',
            vnf_product_name='n', vnf_pkg_id=base.VIM_ID,
            vnf_software_version='1', vnfd_version='1',
            vim_connection_info=[{'vim_id': base.VIM_ID}]), **values}),
            models.VnfLcmOpOccs(
                id=vnf_id[:16], vnf_instance_id=vnf_id, tenant_id='t',
                state_entered_time=entered, start_time=entered,
                operation_state=state, operation='INSTANTIATE',
                is_automatic_invocation=False, is_cancel_pending=False,
                error_point=1))

    def make_guest(self, vnf_id=base.VNF_ID):
        self.cloud.compute.create_server(
            name='VDU1-0-' + vnf_id, metadata={'clickos_vnf': vnf_id})
        self.cloud.network.create_port(
            name='VDU1-0-left', network_id=base.LEFT_NET,
            description='clickos-vnf:' + vnf_id)

    def look(self):
        self.strays.look(self.context)

    def left(self):
        return len(self.cloud.servers), len(self.cloud.ports)

    def test_a_failed_instantiation_leaves_nothing(self):
        self.make_guest()
        self.look()
        self.assertEqual((0, 0), self.left())
        self.lock.release.assert_called_once_with()

    def test_it_tries_again_while_nova_is_away(self):
        self.make_guest()
        away = mock.Mock(side_effect=sdk_exceptions.HttpException('away'))
        real = self.cloud.compute.servers.side_effect
        self.cloud.compute.servers.side_effect = away
        with self.assertRaises(sdk_exceptions.HttpException):
            self.look()
        self.assertEqual((1, 1), self.left())
        self.cloud.compute.servers.side_effect = real
        self.look()
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
        with self.assertRaises(sdk_exceptions.HttpException):
            self.look()
        self.assertEqual((0, 0), self.left())

    def test_each_failure_is_looked_at_once(self):
        self.look()
        self.make_guest()       # not by an operation of Tacker
        self.look()
        self.assertEqual((1, 1), self.left())

    def test_a_retry_that_fails_is_a_new_failure(self):
        self.look()
        self.make_guest()
        self._again()
        self.look()
        self.assertEqual((0, 0), self.left())

    @staticmethod
    @db_api.context_manager.writer
    def _touch(context):
        context.session.query(models.VnfLcmOpOccs).update(
            {'state_entered_time': timeutils.utcnow()})

    def _again(self):
        StraysTest._touch(self.context)

    def test_a_vnf_that_a_conductor_works_on_is_left_alone(self):
        self.make_guest()
        self.lock.acquire.return_value = False
        self.look()
        self.assertEqual((1, 1), self.left())
        self.lock.acquire.return_value = True
        self.look()
        self.assertEqual((0, 0), self.left())

    def test_other_vnfs_stay(self):
        for number, values in enumerate((
                {'state': 'COMPLETED'}, {'age_s': 90000},
                {'instantiation_state': 'INSTANTIATED'})):
            vnf_id = str(number) * 8 + base.VNF_ID[8:]
            self.insert(vnf_id=vnf_id, **values)
            self.make_guest(vnf_id)
        self.look()
        self.assertEqual((3, 3), self.left())

    def test_a_vnf_that_was_deleted_meanwhile(self):
        self.insert(vnf_id=_OTHER, deleted=True)
        self.make_guest(_OTHER)
        self.look()
        self.assertEqual((0, 0), self.left())

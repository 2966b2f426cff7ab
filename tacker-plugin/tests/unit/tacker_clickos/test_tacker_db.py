# SPDX-License-Identifier: Apache-2.0
"""The metadata in a database: SQLite here, with Tacker's own model."""

import datetime
from unittest import mock

from oslo_utils import timeutils
from oslo_utils import uuidutils
from tacker import context as tacker_context
from tacker.db import api as db_api
from tacker.db.db_sqlalchemy import models
from tacker.db.vnfm import vnfm_db
import webob
import webob.dec

from tacker_clickos import api_filter
from tacker_clickos import exception
from tacker_clickos import tacker_db
from tacker_clickos import vnfds
from tests.unit.tacker_clickos import base
from tests.unit.tacker_clickos import database


class RowsTest(database.DatabaseTestCase):

    def setUp(self):
        super().setUp()
        self.can = mock.Mock(spec_set=())
        self.insert(vnf_metadata={'a': 'b'}, task_state='HEALING')

    @staticmethod
    @db_api.context_manager.writer
    def _insert(context, values):
        context.session.add(models.VnfInstance(**values))

    def insert(self, **values):
        RowsTest._insert(self.context, dict(
            id=base.VNF_ID, vnf_instance_name='fw', tenant_id='t',
            instantiation_state='INSTANTIATED', vnfd_id='d',
            vnf_provider='p', vnf_product_name='n', vnf_pkg_id=base.VIM_ID,
            vnf_software_version='1', vnfd_version='1',
            vim_connection_info=[], **values))

    @staticmethod
    @db_api.context_manager.reader
    def _read(context):
        row = context.session.query(models.VnfInstance).one()
        return row.vnf_metadata, row.task_state

    def test_the_change_is_stored_and_nothing_else(self):
        def change(metadata, task_state):
            self.assertEqual(({'a': 'b'}, 'HEALING'), (metadata, task_state))
            return dict(metadata, c='d')
        tacker_db.change_metadata(self.context, base.VNF_ID, change)
        self.assertEqual(({'a': 'b', 'c': 'd'}, 'HEALING'),
                         RowsTest._read(self.context))

    @staticmethod
    @db_api.context_manager.writer
    def _operate(context, state):
        now = timeutils.utcnow()
        context.session.query(models.VnfLcmOpOccs).delete()
        context.session.add(models.VnfLcmOpOccs(
            id=base.VIM_ID, vnf_instance_id=base.VNF_ID,
            operation='HEAL', operation_state=state, start_time=now,
            state_entered_time=now, operation_params='{}',
            is_automatic_invocation=False, is_cancel_pending=False,
            error_point=1, tenant_id='t'))
        context.session.query(models.VnfInstance).update(
            {'updated_at': now})

    def test_a_failed_operation_that_is_busy_for_long_has_a_lost_retry(self):
        now = timeutils.utcnow()
        later = now + datetime.timedelta(seconds=60)
        for state, before, lost in (('FAILED_TEMP', now, False),
                                    ('PROCESSING', later, False),
                                    ('FAILED_TEMP', later, True)):
            RowsTest._operate(self.context, state)
            self.assertEqual([base.VNF_ID] if lost else [],
                             tacker_db.lost_retries(self.context, before))
            self.assertEqual(lost, tacker_db.end_lost_retry(
                self.context, base.VNF_ID, before))
            self.assertEqual(None if lost else 'HEALING',
                             RowsTest._read(self.context)[1])
        self.assertEqual([], tacker_db.lost_retries(self.context, later))

    def test_none_leaves_it(self):
        def change(metadata, _task_state):
            metadata.clear()
        tacker_db.change_metadata(self.context, base.VNF_ID, change)
        self.assertEqual({'a': 'b'}, RowsTest._read(self.context)[0])

    def test_a_vnf_that_is_gone(self):
        tacker_db.change_metadata(self.context, base.VIM_ID, self.fail)

    @staticmethod
    @db_api.context_manager.writer
    def _insert_name(context, **values):
        context.session.add(vnfm_db.VNF(**{
            'vnfd_id': 'd', 'vim_id': base.VIM_ID, 'status': 'INACTIVE',
            **values}))

    def create_second(self, status, name='edge', project='t'):
        """Return the filter's answer to a POST that Tacker answers so.

        The project has the package; test_foreign_ids has projects that do not.
        """
        with mock.patch.object(vnfds, 'find', autospec=True,
                               return_value='d'):
            return self._create_second(status, name, project)

    def _create_second(self, status, name, project):
        answer = webob.Response(status=status, body=b'of Tacker')
        request = webob.Request.blank('/vnf_instances', method='POST')
        request.json_body = {'vnfdId': 'd', 'vnfInstanceName': name}
        context = tacker_context.Context(tenant_id=project, is_admin=False)
        context.can = mock.Mock(spec_set=())
        request.environ['tacker.context'] = context
        return request.get_response(api_filter.factory({}, api='lifecycle')(
            webob.dec.wsgify(lambda _request: answer)))

    def test_a_name_in_use_is_a_conflict(self):
        RowsTest._insert_name(self.context, id=base.VNF_ID, name='edge',
                              tenant_id='t', deleted_at=datetime.datetime.min)
        refused = self.create_second(500)
        self.assertEqual(409, refused.status_int)
        self.assertEqual(
            "vnfInstanceName: VNF %s of this project has the name 'edge';"
            ' choose another name' % base.VNF_ID, refused.json['detail'])

    @staticmethod
    @db_api.context_manager.writer
    def _insert_package(context, number, project):
        package_id = '00000000-0000-4000-8000-00000000000%d' % number
        context.session.add(models.VnfPackage(
            id=package_id, onboarding_state='ONBOARDED', tenant_id=project,
            operational_state='ENABLED', usage_state='NOT_IN_USE',
            algorithm='x', hash='x', location_glance_store='x', size=1))
        context.session.add(models.VnfPackageVnfd(
            id=package_id, package_uuid=package_id, vnfd_id='d%d' % number,
            vnf_provider='p', vnf_product_name='n%d' % number,
            vnf_software_version='1', vnfd_version='1'))

    @staticmethod
    @db_api.context_manager.reader
    def _packages(context):
        row = context.session.query(models.VnfInstance).one()
        packages = context.session.query(models.VnfPackage).order_by(
            models.VnfPackage.id)
        return (row.vnfd_id, row.vnf_product_name, row.vnf_pkg_id[-1],
                context.session.query(vnfm_db.VNF).one().vnfd_id,
                [package.usage_state for package in packages])

    def change(self, body, project='t'):
        """Return the filter's answer to a PATCH, which is Tacker's body."""
        request = webob.Request.blank('/vnf_instances/' + base.VNF_ID,
                                      method='PATCH')
        request.json_body = body
        context = tacker_context.Context(tenant_id=project, is_admin=False)
        context.can = self.can
        request.environ['tacker.context'] = context
        return request.get_response(api_filter.factory({}, api='lifecycle')(
            webob.dec.wsgify(lambda got: webob.Response(body=got.body))))

    def test_another_package(self):
        RowsTest._insert_name(self.context, id=base.VNF_ID, name='edge',
                              tenant_id='t', deleted_at=datetime.datetime.min)
        for number in (1, 2):
            RowsTest._insert_package(self.context, number, 't')
        tacker_db.end_task(self.context, base.VNF_ID)
        answer = self.change({'vnfdId': 'd1', 'vnfInstanceName': 'x'})
        self.assertEqual({'vnfInstanceName': 'x'}, answer.json)
        self.assertTrue(self.can.called)
        self.assertEqual(('d1', 'n1', '1', 'd1', ['IN_USE', 'NOT_IN_USE']),
                         RowsTest._packages(self.context))
        self.change({'vnfdId': 'd2'})
        self.assertEqual(('d2', 'n2', '2', 'd2', ['NOT_IN_USE', 'IN_USE']),
                         RowsTest._packages(self.context))

    def test_a_vnf_gets_packages_of_its_project_only(self):
        RowsTest._insert_name(self.context, id=base.VNF_ID, name='edge',
                              tenant_id='t', deleted_at=datetime.datetime.min)
        RowsTest._insert_package(self.context, 1, 'other')
        RowsTest._insert_package(self.context, 2, 't')
        before = RowsTest._packages(self.context)
        for body, status, reason in (
                ({'vnfdId': 'd1'}, 404, 'package of this project'),
                ({'vnfdId': 'no-such'}, 404, 'with the VNFD: no-such'),
                ({'vnfdId': ['d2']}, 404, 'could not be found'),
                ({'vnfdId': 'd2'}, 400, 'is HEALING; wait'),
                ({'vnfPkgId': base.VIM_ID}, 400, 'by its vnfdId')):
            refused = self.change(body)
            self.assertEqual(status, refused.status_int)
            self.assertIn(reason, refused.json['detail'])
        self.assertEqual(404, self.change({'vnfdId': 'd1'},
                                          'other').status_int)
        self.assertEqual(before, RowsTest._packages(self.context))

    def test_other_answers_stay(self):
        RowsTest._insert_name(self.context, id=base.VNF_ID, name='edge',
                              tenant_id='t',
                              deleted_at=datetime.datetime(2026, 1, 1))
        for request in ({'status': 500}, {'status': 201},
                        {'status': 500, 'name': 'core'},
                        {'status': 500, 'name': None},
                        {'status': 500, 'project': 'other'}):
            self.assertEqual(b'of Tacker', self.create_second(**request).body)

    @staticmethod
    @db_api.context_manager.writer
    def _onboard(context, vnfd_id):
        """Make the rows that Tacker's on-boarding makes."""
        context.session.add(vnfm_db.VNFD(id=vnfd_id, tenant_id='t',
                                         name='fw-1'))
        context.session.flush()
        context.session.add(vnfm_db.VNFDAttribute(
            id=uuidutils.generate_uuid(), vnfd_id=vnfd_id, key='k'))

    @staticmethod
    @db_api.context_manager.writer
    def _delete_packages(context):
        """Mark the packages as Tacker does."""
        context.session.query(models.VnfPackageVnfd).update(
            {'deleted': models.VnfPackageVnfd.id})

    @staticmethod
    @db_api.context_manager.reader
    def _kept(context):
        """Return the ids of VNFDs, and those that other rows have."""
        return ({each.id for each in context.session.query(vnfm_db.VNFD)},
                context.session.query(vnfm_db.VNF).one().vnfd_id,
                [each.vnfd_id for each in
                 context.session.query(vnfm_db.VNFDAttribute)])

    def test_the_id_of_a_deleted_packages_vnfd_is_free(self):
        RowsTest._insert_name(self.context, id=base.VNF_ID, name='edge',
                              tenant_id='t', deleted_at=timeutils.utcnow())
        RowsTest._insert_package(self.context, 1, 't')
        stored = vnfds.key('t', 'd1')
        for _again in range(3):
            vnfds.release('t', 'd')    # what no package ever had
            RowsTest._onboard(self.context, stored)
            self.assertRaises(exception.VnfdInUse, vnfds.release, 't', 'd1')
            RowsTest._delete_packages(self.context)
            vnfds.release('t', 'd1')
            self.assertNotIn(stored, RowsTest._kept(self.context)[0])
            RowsTest._restore_package(self.context)
        ids, _of_vnf, of_attributes = RowsTest._kept(self.context)
        self.assertEqual(ids, set(of_attributes))

    def test_rows_of_deleted_vnfs_follow(self):
        stored = vnfds.key('t', 'd')
        RowsTest._insert_name(self.context, id=base.VNF_ID, name='edge',
                              tenant_id='t', deleted_at=timeutils.utcnow(),
                              vnfd_id=stored)
        RowsTest._onboard(self.context, stored)
        vnfds.release('t', 'd')
        (gone,), of_vnf, of_attributes = RowsTest._kept(self.context)
        self.assertNotEqual(stored, gone)
        self.assertEqual((gone, [gone]), (of_vnf, of_attributes))

    @staticmethod
    @db_api.context_manager.writer
    def _restore_package(context):
        """Let a package have the id again."""
        context.session.query(models.VnfPackageVnfd).update({'deleted': '0'})

# SPDX-License-Identifier: Apache-2.0
"""Tacker's tables in SQLite, with rows that Tacker's own objects write."""

import datetime

from oslo_db.sqlalchemy import enginefacade
from oslo_utils import timeutils
import sqlalchemy as sa
from tacker import context as tacker_context
from tacker.db import api as db_api
from tacker.db.db_sqlalchemy import models
from tacker.db import model_base
from tacker.db.vnfm import vnfm_db
from tacker import objects

from tests.unit.tacker_clickos import base

#: columns that a VNF must have
_VNF = {'vnf_instance_name': 'fw', 'tenant_id': 't', 'vnfd_id': 'd',
        'vnf_provider': 'p', 'vnf_product_name': 'n',
        'vnf_pkg_id': base.VIM_ID, 'vnf_software_version': '1',
        'vnfd_version': '1'}


class DatabaseTestCase(base.CloudTestCase):
    """With a cloud, and VNFs and operations in a database."""

    def setUp(self):
        super().setUp()
        database = enginefacade.transaction_context()
        database.configure(connection='sqlite://')
        self.addCleanup(db_api.context_manager.patch_factory(database))
        engine = database.writer.get_engine()
        self.addCleanup(engine.dispose)
        model_base.BASE.metadata.create_all(engine)
        # A context's own session is of the configured database.
        self.patch(db_api, 'get_session')
        self.context = tacker_context.get_admin_context()

    def make_vnf(self, vnf_id=base.VNF_ID, status='ACTIVE', vims=None,
                 **values):
        """Store a VNF in both of Tacker's tables."""
        vnf = base.vnf_instance()
        vnf.instantiated_vnf_info.vnfc_resource_info[0].metadata = {
            'name': 'VDU1-0'}
        info = vnf.instantiated_vnf_info
        info.vnf_instance_id = vnf_id
        made = objects.VnfInstance(
            self.context, **{**_VNF, 'instantiation_state': 'INSTANTIATED',
                             **values})
        made.create()
        _name(self.context, made.id, vnf_id, status)
        made = objects.VnfInstance.get_by_id(self.context, vnf_id)
        made.instantiated_vnf_info = info
        made.vim_connection_info = (
            [base.vim_connection()] if vims is None else vims)
        made.save()

    def make_operation(self, operation, state, age_s, vnf_id=base.VNF_ID):
        """Store an operation that entered its state some time ago."""
        entered = timeutils.utcnow() - datetime.timedelta(seconds=age_s)
        made = objects.VnfLcmOpOcc(
            self.context, id=vnf_id, vnf_instance_id=vnf_id,
            tenant_id='t', state_entered_time=entered, start_time=entered,
            operation_state=state, operation=operation,
            operation_params='{}', is_automatic_invocation=False,
            is_cancel_pending=False, error_point=0)
        made.create()

    def operation(self, vnf_id=base.VNF_ID):
        return objects.VnfLcmOpOcc.get_by_id(self.context, vnf_id)

    def change(self, model, **values):
        """Write columns of all rows of a table, as another process would."""
        _change(self.context, model, values)

    def spoil(self, model, name, row_id):
        """Write a text that is no JSON into a column of a row."""
        _spoil(self.context, model, name, row_id)

    def column(self, model, name, vnf_id=base.VNF_ID):
        return _column(self.context, model, name, vnf_id)


@db_api.context_manager.writer
def _name(context, made_id, vnf_id, status):
    """Give a VNF a known id; the older table gets its row from the API."""
    context.session.query(models.VnfInstance).filter_by(id=made_id).update(
        {'id': vnf_id})
    context.session.add(vnfm_db.VNF(
        id=vnf_id, tenant_id='t', name=vnf_id, status=status,
        vnfd_id='d', vim_id=base.VIM_ID, deleted_at=datetime.datetime.min))


@db_api.context_manager.writer
def _change(context, model, values):
    context.session.query(model).update(values)


@db_api.context_manager.writer
def _spoil(context, model, name, row_id):
    context.session.query(model).filter_by(id=row_id).update(
        {name: sa.text("'{'")}, synchronize_session=False)


@db_api.context_manager.reader
def _column(context, model, name, vnf_id):
    return getattr(context.session.query(model).filter_by(
        id=vnf_id).one(), name)

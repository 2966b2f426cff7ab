# SPDX-License-Identifier: Apache-2.0
"""Reads names and changes metadata in Tacker's tables.

Saving a VNF instance object writes every column, and so undoes writes of an
operation or another update since the read. This module changes only the
metadata, under the row's lock.
"""

import contextlib
import datetime

from oslo_utils import timeutils
import sqlalchemy as sa
from tacker import context as tacker_context
from tacker.db import api as db_api
from tacker.db.db_sqlalchemy import api as sqlalchemy_api
from tacker.db.db_sqlalchemy import models
from tacker.db.vnfm import vnfm_db
from tacker.objects import fields
from tacker.plugins.common import constants

from tacker_clickos import exception
from tacker_clickos import vnfds

_ROLLING_BACK = 'ROLLING_BACK'
#: States of operations that a conductor works on, or will.
OPEN = (fields.LcmOccsOperationState.STARTING,
        fields.LcmOccsOperationState.PROCESSING, _ROLLING_BACK)
#: A change of name, package or metadata; Tacker takes no lock for it.
MODIFY = 'MODIFY_INFO'
#: Seconds after which a claim ends whose process has ended, more than
#: Tacker needs to ask a service that does not answer.
_CLAIM_S = 300
#: Operations of a VNF that are looked at.
_MAX_SEEN = 16


@db_api.context_manager.writer
def change_metadata(context, vnf_id, change):
    """Replace the metadata by the result of ``change``.

    :param change: called with a copy of the metadata and the task state;
        returns the new metadata, or None to leave them
    """
    row = sqlalchemy_api.model_query(context, models.VnfInstance).filter_by(
        id=vnf_id).with_for_update().first()
    if row is None:
        return
    changed = change(dict(row.vnf_metadata or {}), row.task_state)
    if changed is not None:
        row.vnf_metadata = changed


@contextlib.contextmanager
def own_context():
    """Give a context whose session no failure of another one has broken."""
    context = tacker_context.get_admin_context()
    try:
        yield context
    finally:
        # Tacker's readers leave it open.
        context.session.close()


def release(context):
    """Give back the connection that Tacker's readers hold in a session.

    A connection that is held while the database restarts is of no more use;
    one that is taken later is tested first.
    """
    session = context.session
    begun = session.get_transaction()
    if begun and begun.origin is sa.orm.SessionTransactionOrigin.AUTOBEGIN:
        session.commit()


@db_api.context_manager.writer
def end_task(context, vnf_id):
    """Note that no operation works on a VNF, since the last one failed.

    Tacker has two rows for a VNF. Its API lets an operation fail for good
    only if the older one says ERROR; a change of metadata leaves it ACTIVE.
    """
    context.session.query(models.VnfInstance).filter_by(id=vnf_id).update(
        {'task_state': None})
    context.session.query(vnfm_db.VNF).filter_by(id=vnf_id).update(
        {'status': constants.ERROR})


@db_api.context_manager.writer
def set_operation_params(context, operation_id, params):
    """Store the parameters of an operation; saving the object does not.

    :param params: JSON text
    """
    context.session.query(models.VnfLcmOpOccs).filter_by(
        id=operation_id).update({'operation_params': params})


def entered(operation_id):
    """Return when an operation entered the state FAILED_TEMP, or None."""
    return _entered(tacker_context.get_admin_context(), operation_id)


@db_api.context_manager.reader
def _entered(context, operation_id):
    row = _failed(context, operation_id).first()
    return row and row.state_entered_time


@contextlib.contextmanager
def claimed(operation_id):
    """Let one request alone decide what becomes of a failed operation.

    Tacker has several processes, and each would take a request of its own.
    None of them uses the column of the claim, which ends without this one.

    :raises: BeginsAgain while another request has the operation
    """
    until = timeutils.utcnow().replace(microsecond=0) + datetime.timedelta(
        seconds=_CLAIM_S)
    if not _claim(tacker_context.get_admin_context(), operation_id, until):
        raise exception.BeginsAgain(operation_id=operation_id)
    try:
        yield
    finally:
        _end_claim(tacker_context.get_admin_context(), operation_id, until)


@db_api.context_manager.writer
def _claim(context, operation_id, until):
    """Return false if another request has a claim; Tacker refuses the rest.
    """
    column = models.VnfLcmOpOccs.deleted_at
    failed = _failed(context, operation_id)
    return failed.filter(
        sa.or_(column.is_(None), column < timeutils.utcnow())).update(
            {'deleted_at': until}, synchronize_session=False
    ) or failed.first() is None


@db_api.context_manager.writer
def _end_claim(context, operation_id, until):
    context.session.query(models.VnfLcmOpOccs).filter_by(
        id=operation_id, deleted=False, deleted_at=until).update(
            {'deleted_at': None}, synchronize_session=False)


def begin_retry(operation_id, failed_at):
    """Show that a retry was taken: PROCESSING, without the old error.

    Tacker shows it only when a conductor begins, and keeps the error for
    ever. If the message gets lost, the operation is one without a conductor.

    :param failed_at: from entered(), before Tacker had the request; a retry
        that failed meanwhile has another time
    """
    _begin_again(
        tacker_context.get_admin_context(), operation_id, failed_at, {
            'operation_state': fields.LcmOccsOperationState.PROCESSING,
            'error': sa.null()})


def begin_rollback(operation_id, failed_at):
    """Show that a rollback was taken: ROLLING_BACK.

    Tacker shows it only when a conductor begins, and takes others meanwhile.
    They would wait for the VNF, and be carried out after the first one.

    :param failed_at: as of begin_retry()
    """
    _begin_again(tacker_context.get_admin_context(), operation_id, failed_at,
                 {'operation_state': _ROLLING_BACK})


@db_api.context_manager.writer
def _begin_again(context, operation_id, failed_at, values):
    _failed(context, operation_id).filter_by(
        state_entered_time=failed_at).update(
            {'state_entered_time': timeutils.utcnow(), **values},
            synchronize_session=False)


def _failed(context, operation_id):
    return context.session.query(models.VnfLcmOpOccs).filter_by(
        id=operation_id,
        operation_state=fields.LcmOccsOperationState.FAILED_TEMP)


@db_api.context_manager.writer
def forget_errors(context):
    """Remove the errors of operations that a retry has completed.

    A conductor may write an error back that it read before the retry.
    """
    table = models.VnfLcmOpOccs
    context.session.query(table).filter(
        table.operation_state == fields.LcmOccsOperationState.COMPLETED,
        table.error.isnot(sa.null())).update(
            {'error': sa.null()}, synchronize_session=False)


def operation_error(operation_id):
    """Return the error of an operation as Tacker stored it, or None."""
    return _operation_error(tacker_context.get_admin_context(), operation_id)


@db_api.context_manager.reader
def _operation_error(context, operation_id):
    row = context.session.query(models.VnfLcmOpOccs.error).filter_by(
        id=operation_id).first()
    return row and row.error


def set_operation_error(operation_id, error):
    """Store an error that operation_error() returned."""
    _set_operation_error(tacker_context.get_admin_context(), operation_id,
                         error)


@db_api.context_manager.writer
def _set_operation_error(context, operation_id, error):
    context.session.query(models.VnfLcmOpOccs).filter_by(
        id=operation_id).update({'error': error})


def failed_operation(vnf_id):
    """Return (id, name) of a VNF's operation that waits for a decision."""
    return _failed_operation(tacker_context.get_admin_context(), vnf_id)


@db_api.context_manager.reader
def _failed_operation(context, vnf_id):
    row = context.session.query(
        models.VnfLcmOpOccs.id, models.VnfLcmOpOccs.operation).filter_by(
            vnf_instance_id=vnf_id,
            operation_state=fields.LcmOccsOperationState.FAILED_TEMP).first()
    return row and (row.id, row.operation)


def open_operations_of(vnf_id, modified_since):
    """Return (id, name, state) of the operations that work on a VNF.

    :param modified_since: changes of a VNF that began earlier do not count
    """
    return _open_operations_of(tacker_context.get_admin_context(), vnf_id,
                               modified_since)


@db_api.context_manager.reader
def _open_operations_of(context, vnf_id, modified_since):
    table = models.VnfLcmOpOccs
    found = context.session.query(
        table.id, table.operation, table.operation_state).filter(
            table.vnf_instance_id == vnf_id,
            table.operation_state.in_(OPEN),
            sa.or_(table.operation != MODIFY,
                   table.state_entered_time >= modified_since))
    return [tuple(row) for row in found.limit(_MAX_SEEN)]


def open_operations(project_id):
    """Return (id, id of the VNF) of a project's operations in progress."""
    return _open_operations(tacker_context.get_admin_context(), project_id)


@db_api.context_manager.reader
def _open_operations(context, project_id):
    table = models.VnfLcmOpOccs
    return [tuple(row) for row in context.session.query(
        table.id, table.vnf_instance_id).filter(
            table.tenant_id == project_id,
            table.operation_state.in_(OPEN))]


def ended_since(operation_id, since):
    """Return whether an operation has ended or failed since a time."""
    return _ended_since(tacker_context.get_admin_context(), operation_id,
                        since)


@db_api.context_manager.reader
def _ended_since(context, operation_id, since):
    table = models.VnfLcmOpOccs
    return context.session.query(table.id).filter(
        table.id == operation_id, table.operation_state.notin_(OPEN),
        table.state_entered_time >= since).first() is not None


@db_api.context_manager.reader
def instantiated(context):
    """Return the ids of the VNFs that have guests of ClickOS."""
    vnf = models.VnfInstance
    return [row.id for row in context.session.query(vnf.id).filter(
        vnfds.ours()).filter_by(
            instantiation_state=fields.VnfInstanceState.INSTANTIATED,
            deleted=False)]


@db_api.context_manager.reader
def lost_retries(context, before):
    """Return the VNFs of failed operations whose retry did not begin.

    :param before: VNFs that changed later are left out
    """
    return [row.id for row in _lost_retries(context, before).with_entities(
        models.VnfInstance.id)]


@db_api.context_manager.writer
def end_lost_retry(context, vnf_id, before):
    """Note that no operation works on one of them; return if it still is."""
    return bool(_lost_retries(context, before).filter_by(id=vnf_id).update(
        {'task_state': None}, synchronize_session=False))


def _lost_retries(context, before):
    failed = context.session.query(
        models.VnfLcmOpOccs.vnf_instance_id).filter_by(
        operation_state=fields.LcmOccsOperationState.FAILED_TEMP)
    return context.session.query(models.VnfInstance).filter(
        models.VnfInstance.task_state.isnot(None),
        models.VnfInstance.updated_at < before,
        models.VnfInstance.id.in_(failed))


def vnf_with_name(project_id, name):
    """Return the id of the project's VNF of this name, or None.

    A request's own context may hold the session of a failed transaction.
    """
    return _vnf_with_name(tacker_context.get_admin_context(), project_id,
                          name)


@db_api.context_manager.reader
def _vnf_with_name(context, project_id, name):
    """Look up the columns of Tacker's unique constraint."""
    row = context.session.query(vnfm_db.VNF.id).filter_by(
        tenant_id=project_id, name=name,
        deleted_at=datetime.datetime.min).first()
    return row and row.id

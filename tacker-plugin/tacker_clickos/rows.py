# SPDX-License-Identifier: Apache-2.0
"""Reads names and changes metadata in Tacker's tables.

Saving a VNF instance object writes every column, and so undoes writes of an
operation or another update since the read. This module changes only the
metadata, under the row's lock.
"""

import datetime

from tacker import context as tacker_context
from tacker.db import api as db_api
from tacker.db.db_sqlalchemy import api as sqlalchemy_api
from tacker.db.db_sqlalchemy import models
from tacker.db.vnfm import vnfm_db


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


@db_api.context_manager.writer
def end_task(context, vnf_id):
    """Note that no operation works on a VNF."""
    context.session.query(models.VnfInstance).filter_by(id=vnf_id).update(
        {'task_state': None})


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

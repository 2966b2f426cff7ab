# SPDX-License-Identifier: Apache-2.0
"""Changes a VNF's metadata where it lies.

Saving a VNF instance object writes every column, and so undoes writes of an
operation or another update since the read. This module changes only the
metadata, under the row's lock.
"""

from tacker.db import api as db_api
from tacker.db.db_sqlalchemy import api as sqlalchemy_api
from tacker.db.db_sqlalchemy import models


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

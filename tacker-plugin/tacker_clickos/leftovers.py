# SPDX-License-Identifier: Apache-2.0
"""Removes what failed operations of VNFs have left (docs/adr/0039).

A failed instantiation or termination cleans up at once. If Nova or Neutron
is away just then, servers and ports stay that no VNF has any more.
"""

import datetime

from oslo_log import log as logging
from oslo_utils import timeutils
from tacker.common import coordination
from tacker.db import api as db_api
from tacker.db.db_sqlalchemy import models
from tacker import objects
from tacker.objects import fields
from tacker.vnflcm import utils as vnflcm_utils

from tacker_clickos import guests
from tacker_clickos import tacker_db
from tacker_clickos import vim
from tacker_clickos import vnfds

LOG = logging.getLogger(__name__)

_STATES = fields.LcmOccsOperationState
_FAILED = (_STATES.FAILED_TEMP, _STATES.FAILED, 'ROLLED_BACK')
#: Older operations are left to the operator.
_MAX_AGE = datetime.timedelta(days=1)


class Leftovers:
    """Looks once behind each failed operation; several conductors may."""

    def __init__(self):
        self._coordinator = coordination.Coordinator(
            prefix=coordination.COORDINATOR.prefix)
        self._clean = set()

    def run_once(self, context, troubles):
        """Sweep behind the failed operations that were not looked at yet.

        :param troubles: troubles.Troubles, which notes what fails
        :raises: what the database raises before the first one
        """
        failed = _failed(context)
        self._clean &= set(failed)
        troubles.keep('sweep', failed.values())
        for operation in set(failed) - self._clean:
            with troubles.tried('sweep', failed[operation]):
                if self._sweep(failed[operation]):
                    self._clean.add(operation)

    def _sweep(self, vnf_id):
        """Sweep behind a VNF, unless a conductor works on it.

        :returns: whether there is nothing left to be done
        """
        self._coordinator.start()
        lock = self._coordinator.get_lock(vnf_id)
        if not lock.acquire(blocking=False):
            return False
        try:
            with tacker_db.own_context() as context:
                # An operation may have ended since the list was made.
                if _failed(context, vnf_id):
                    _remove(context, vnf_id)
        finally:
            lock.release()
        return True


@db_api.context_manager.reader
def _failed(context, vnf_id=None):
    """Return {operation and time: VNF} of VNFs that have no guests.

    VNFs that are deleted count, too. One whose VIMs cannot be read hides no
    other.
    """
    operation, vnf = models.VnfLcmOpOccs, models.VnfInstance
    query = context.session.query(
        operation.id, operation.state_entered_time, vnf.id).join(
            vnf, vnf.id == operation.vnf_instance_id).filter(
                operation.operation_state.in_(_FAILED),
                operation.state_entered_time > timeutils.utcnow() - _MAX_AGE,
                vnf.instantiation_state
                == fields.VnfInstanceState.NOT_INSTANTIATED, vnfds.ours())
    if vnf_id is not None:
        query = query.filter(vnf.id == vnf_id)
    return {(op_id, entered): found for op_id, entered, found in query.all()}


@db_api.context_manager.reader
def _vims(context, vnf_id):
    """Return the VIMs of a VNF as Tacker's table has them."""
    column = models.VnfInstance.vim_connection_info
    return context.session.query(column).filter(
        models.VnfInstance.id == vnf_id).scalar() or ()


def _remove(context, vnf_id):
    """Remove the servers and ports of a VNF, if it had a VIM."""
    connections = [objects.VimConnectionInfo.obj_from_primitive(each, context)
                   for each in _vims(context, vnf_id)]
    if not connections:
        return
    access_info = vnflcm_utils.get_vim(context, connections)['access_info']
    fleet = guests.Guests(vim.connect(access_info), vnf_id)
    if fleet.sweep():
        LOG.warning('VNF %s: removed what a failed operation had left',
                    vnf_id)

# SPDX-License-Identifier: Apache-2.0
"""Removes what failed operations of VNFs have left (docs/adr/0075).

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
from tacker_clickos import vim

LOG = logging.getLogger(__name__)

_STATES = fields.LcmOccsOperationState
_FAILED = (_STATES.FAILED_TEMP, _STATES.FAILED, 'ROLLED_BACK')
#: Older operations are left to the operator.
_MAX_AGE = datetime.timedelta(days=1)


class Strays:
    """Looks once behind each failed operation; several conductors may."""

    def __init__(self):
        self._coordinator = coordination.Coordinator(
            prefix=coordination.COORDINATOR.prefix)
        self._clean = set()

    def look(self, context):
        """Sweep behind the failed operations that were not looked at yet.

        :raises: the first error of a VIM, after all others were tried; the
            next look tries again
        """
        failed = _failed(context)
        self._clean &= set(failed)
        errors = []
        for operation in set(failed) - self._clean:
            try:
                if self._sweep(context, *failed[operation]):
                    self._clean.add(operation)
            except Exception as error:
                errors.append(error)
        if errors:
            raise errors[0]

    def _sweep(self, context, vnf_id, vim_id):
        """Sweep behind a VNF, unless a conductor works on it.

        :returns: whether there is nothing left to be done
        """
        self._coordinator.start()
        lock = self._coordinator.get_lock(vnf_id)
        if not lock.acquire(blocking=False):
            return False
        try:
            # An operation may have ended since the list was made.
            if any(vnf_id == each for each, _vim in
                   _failed(context, vnf_id).values()):
                _remove(context, vnf_id, vim_id)
        finally:
            lock.release()
        return True


@db_api.context_manager.reader
def _failed(context, vnf_id=None):
    """Return {operation and time: (VNF, VIM)} of VNFs that have no guests.

    VNFs that are deleted count, too.
    """
    operation, vnf = models.VnfLcmOpOccs, models.VnfInstance
    query = context.session.query(
        operation.id, operation.state_entered_time, vnf.id,
        vnf.vim_connection_info).join(
            vnf, vnf.id == operation.vnf_instance_id).filter(
                operation.operation_state.in_(_FAILED),
                operation.state_entered_time > timeutils.utcnow() - _MAX_AGE,
                vnf.instantiation_state
                == fields.VnfInstanceState.NOT_INSTANTIATED)
    if vnf_id is not None:
        query = query.filter(vnf.id == vnf_id)
    return {(op_id, entered): (vnf_id, vims[0]['vim_id'])
            for op_id, entered, vnf_id, vims in query.all() if vims}


def _remove(context, vnf_id, vim_id):
    connection = objects.VimConnectionInfo(
        id='vim', vim_id=vim_id, vim_type='openstack', access_info={},
        extra={})
    access_info = vnflcm_utils.get_vim(context, [connection])['access_info']
    fleet = guests.Guests(vim.connect(access_info), vnf_id)
    if fleet.sweep():
        LOG.warning('VNF %s: removed what a failed operation had left',
                    vnf_id)

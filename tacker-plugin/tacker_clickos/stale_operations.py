# SPDX-License-Identifier: Apache-2.0
"""Ends operations whose conductor died (docs/adr/0039).

A conductor holds the lock of a VNF from before an operation is PROCESSING
until after its end. So a free lock and a state that stays PROCESSING mean
that no conductor works on it, and Tacker would refuse every later operation.
"""

import ast
import datetime
import json

from oslo_config import cfg
from oslo_log import log as logging
from oslo_utils import timeutils
from tacker.common import coordination
from tacker.db import api as db_api
from tacker.db.db_sqlalchemy import models
from tacker import objects
from tacker.objects import fields
from tacker.vnflcm import utils as vnflcm_utils

from tacker_clickos import guests
from tacker_clickos import state
from tacker_clickos import tacker_db
from tacker_clickos import vim
from tacker_clickos.vnfd import loader
from tacker_clickos import vnfds

LOG = logging.getLogger(__name__)

_STATES = fields.LcmOccsOperationState
_OPERATIONS = fields.LcmOccsOperationType
#: They may have made guests that no record has.
_MAKE_GUESTS = (_OPERATIONS.INSTANTIATE, _OPERATIONS.SCALE)
#: An operation may wait for a conductor, or hold no lock. It counts as dead
#: after this number of stale_operation_timeout.
_QUEUE_FACTOR = 10
_REASON = 'the conductor of this operation died, or lost its database; '


class StaleOperations:
    """Finds and ends dead operations; several conductors may look at once."""

    def __init__(self):
        # Tacker's own belongs to the worker that the conductor forks.
        self._coordinator = coordination.Coordinator(
            prefix=coordination.COORDINATOR.prefix)

    def run_once(self, context, troubles):
        """End each dead operation: clean up, then let its user decide.

        The next look tries again what failed; one failure stops no other.

        :param troubles: troubles.Troubles, which notes what fails
        :raises: what database or lock service raise before the first one
        """
        self._coordinator.start()
        tacker_db.forget_errors(context)
        stale = _stale(context)
        troubles.keep('operation', {operation for operation, _vnf in stale})
        for operation_id, vnf_id in stale:
            with troubles.tried('operation', operation_id):
                self._alone(vnf_id, _end, operation_id)
        before = timeutils.utcnow() - _limit(_QUEUE_FACTOR)
        lost = tacker_db.lost_retries(context, before)
        troubles.keep('retry', lost)
        for vnf_id in lost:
            with troubles.tried('retry', vnf_id):
                self._alone(vnf_id, _release, vnf_id, before)

    def _alone(self, vnf_id, work, *arguments):
        """Do the work unless a conductor works on the VNF."""
        lock = self._coordinator.get_lock(vnf_id)
        if lock.acquire(blocking=False):
            try:
                with tacker_db.own_context() as context:
                    work(context, *arguments)
            finally:
                lock.release()


@db_api.context_manager.reader
def _stale(context):
    """Return (operation, VNF) of what has not changed for a long time.

    Only plain columns are read: a row whose JSON cannot be read hides no
    other, and requests may have 2 MB.
    """
    table = models.VnfLcmOpOccs
    found = context.session.query(
        table.id, table.vnf_instance_id, table.operation,
        table.operation_state, table.state_entered_time).filter(
            table.operation_state.in_(tacker_db.OPEN)).all()
    return [(row.id, row.vnf_instance_id) for row in found if is_stale(row)]


def is_stale(operation):
    """Return whether an operation without a lock must be dead."""
    waits = (operation.operation_state == _STATES.STARTING
             or operation.operation == tacker_db.MODIFY)
    entered = timeutils.normalize_time(operation.state_entered_time)
    return timeutils.utcnow() - entered > _limit(
        _QUEUE_FACTOR if waits else 1)


def _limit(factor):
    return datetime.timedelta(
        seconds=cfg.CONF.clickos.stale_operation_timeout * factor)


def _release(context, vnf_id, before):
    """Let a user retry again; the message of the first retry got lost.

    Tacker's API notes the retry at the VNF, and the operation is FAILED_TEMP
    until a conductor has the message.
    """
    if tacker_db.end_lost_retry(context, vnf_id, before):
        LOG.warning('VNF %s: the retry of its operation reached no conductor',
                    vnf_id)


def _end(context, operation_id):
    """Clean up behind a dead operation, and make it FAILED_TEMP.

    The caller holds the VNF's lock.
    """
    operation = objects.VnfLcmOpOcc.get_by_id(context, operation_id)
    if operation.operation_state not in tacker_db.OPEN \
            or not is_stale(operation):
        return      # another has ended it, or continues with it
    vnf_instance = objects.VnfInstance.get_by_id(
        context, operation.vnf_instance_id)
    _clean(context, operation, vnf_instance)
    tacker_db.end_task(context, vnf_instance.id)
    tacker_db.set_operation_params(context, operation.id,
                                   _as_json(operation.operation_params))
    # Tacker retries nothing that failed before its first step.
    operation.error_point = (operation.error_point
                             or fields.ErrorPoint.NOTIFY_PROCESSING)
    operation.operation_state = _STATES.FAILED_TEMP
    operation.state_entered_time = timeutils.utcnow()
    operation.error = objects.ProblemDetails(
        context=context, status=500, detail=_reason(operation))
    operation.save()
    LOG.warning('VNF %s: operation %s (%s) had no conductor and is '
                'FAILED_TEMP now', vnf_instance.id, operation.id,
                operation.operation)


def _as_json(params):
    """Return the parameters of an operation as Tacker's API reads them.

    Tacker 16 stores those of a change of metadata as Python's text of a dict
    (api/vnflcm/v1/controller.py), and cannot show or fail the operation.
    """
    for parse in json.loads, ast.literal_eval:
        try:
            return json.dumps(parse(params))
        except (TypeError, ValueError, SyntaxError, RecursionError,
                MemoryError):
            continue
    return '{}'


def _reason(operation):
    """Return what happened, and what Tacker lets a user do now."""
    if operation.operation == tacker_db.MODIFY:
        return _REASON + 'let it fail, then ask for the change again'
    if operation.operation == _OPERATIONS.INSTANTIATE \
            and not vnfds.is_ours(operation.vnf_instance_id):
        return _REASON + ('delete its stack in Heat, if there is one, then '
                          'retry the operation or let it fail')
    if operation.operation in _MAKE_GUESTS:
        return _REASON + 'retry the operation, roll it back or let it fail'
    return _REASON + 'retry the operation or let it fail'


def _clean(context, operation, vnf_instance):
    """Remove the guests that Tacker does not know, and their ports."""
    if operation.operation not in _MAKE_GUESTS:
        return      # what is left is recorded; a retry continues with it
    if not vnfds.is_ours(vnf_instance.id):
        return      # Heat has what is left
    if not vnf_instance.vim_connection_info:
        return      # Tacker stores it before it calls the driver
    access_info = vnflcm_utils.get_vim(
        context, vnf_instance.vim_connection_info)['access_info']
    fleet = guests.Guests(vim.connect(access_info), vnf_instance.id,
                          states=state.state_ids(vnf_instance))
    if operation.operation == _OPERATIONS.INSTANTIATE:
        fleet.sweep()
    else:
        info = vnf_instance.instantiated_vnf_info
        flavour = loader.load(
            vnflcm_utils.get_vnf_package_path(context, vnf_instance.vnfd_id),
            info.flavour_id)
        fleet.keep(flavour.vdus,
                   [state.name(vnfc) for vnfc in info.vnfc_resource_info])

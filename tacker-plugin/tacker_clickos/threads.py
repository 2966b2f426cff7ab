# SPDX-License-Identifier: Apache-2.0
"""Shares the threads of a conductor among projects.

oslo.messaging carries out an operation in one of executor_thread_pool_size
threads, and a guest that does not answer holds its operation there. So a
project's operation waits in memory, without a thread, while the project holds
as many threads as are free, but for those that are kept for projects without
one. Each conductor shares its own threads.
"""

import collections
import functools
import sys
import threading

from oslo_config import cfg
from oslo_log import log as logging
from oslo_utils import timeutils
from tacker import objects
from tacker.objects import fields

from tacker_clickos import exception
from tacker_clickos import tacker_db

LOG = logging.getLogger(__name__)

#: oslo.messaging's default.
_THREADS = 64
#: The part of all threads that only projects without one get.
_KEPT = 4
#: Operations of a project that wait in a conductor. The filter before Tacker
#: refuses operations earlier (early.py); Tacker bounds no changes of a VNF.
MAX_WAITING = 256
#: Tacker's changes of name, package and metadata: it makes their row here.
_MODIFY = 'update'
#: A message of its own, and a part of operations.
_NOTIFY = 'send_notification'
#: Messages that have no answer, and that members cause.
_OPERATIONS = (_MODIFY, 'instantiate', 'terminate', 'heal', 'scale',
               'rollback', 'change_ext_conn', 'upload_vnf_package_content',
               'delete_vnf_package', _NOTIFY)
#: The test of a subscription, whose sender waits for the answer; and what
#: Tacker calls a test that failed. It takes 30 s if a callback URI answers
#: something else, as Keystone's does.
_TEST, _TEST_FAILED = 'test_notification', -1
_CONDUCTOR = 'tacker.conductor.conductor_server'


def total():
    """Return the number of operations that a conductor carries out together.
    """
    return getattr(cfg.CONF, 'executor_thread_pool_size', _THREADS)


class Shares:
    """Runs the work of projects, or keeps it until a thread may have it.

    A project has one thread at least. It gets another one if as many remain
    for others as it then holds; of the last quarter a project gets its first
    one only. So of 64 threads the first project gets 32, the next one 16, and
    18 projects are needed to take all. A thread that ends what it does goes
    to the project with the fewest threads among those that may have one.
    """

    def __init__(self):
        self._lock = threading.Lock()
        self._held = collections.Counter()
        self._waiting = {}
        self._thread = threading.local()

    def run(self, project_id, work, later=None):
        """Call ``work`` in this thread now, or later in another one.

        Work that is a part of other work is called in its thread.

        :param later: is called instead of it later
        :raises: Busy if too much of the project waits already
        """
        if getattr(self._thread, 'is_taken', False):
            work()
        elif self._begin(project_id, later or work):
            self._thread.is_taken = True
            try:
                work()
            finally:
                self._go_on(self._next(project_id))
                self._thread.is_taken = False

    def answer(self, project_id, work):
        """Call ``work`` in this thread and return its result.

        :raises: Busy if the project may not have the thread
        """
        with self._lock:
            if not self._may_begin(project_id):
                raise exception.Busy(
                    reason='the project holds %d of %d threads of the'
                    ' conductor; retry later'
                    % (self._held[project_id], total()))
            self._held[project_id] += 1
        try:
            return work()
        finally:
            following = self._next(project_id)
            if following:    # the answer cannot wait for it
                threading.Thread(target=self._go_on, args=(following,),
                                 daemon=True).start()

    def _go_on(self, following):
        """Do what waits; see _next()."""
        self._thread.is_taken = True
        while following is not None:
            project_id, work = following
            _run(work)
            following = self._next(project_id)

    def _begin(self, project_id, work):
        """Take a thread, or a place among those that wait."""
        with self._lock:
            if self._may_begin(project_id):
                self._held[project_id] += 1
                return True
            waiting = self._waiting.setdefault(project_id,
                                               collections.deque())
            if len(waiting) >= MAX_WAITING:
                raise exception.Busy(
                    reason='%d operations of the project wait for a thread of'
                    ' the conductor, the limit is %d; retry later'
                    % (len(waiting), MAX_WAITING))
            waiting.append(work)
            return False

    def _may_begin(self, project_id):
        held = self._held[project_id]
        free = total() - self._held.total()
        return not held or held + 1 < free > total() // _KEPT

    def _next(self, project_id):
        """End the work of a project.

        :returns: (project, work) that the thread does next; None if others
            may have it
        """
        with self._lock:
            self._held[project_id] -= 1
            self._held += collections.Counter()    # without zeros
            found = min(filter(self._may_begin, self._waiting),
                        key=lambda each: self._held[each], default=None)
            if found is None:
                return None
            waiting = self._waiting.pop(found)
            work = waiting.popleft()
            if waiting:    # its turn comes after that of others
                self._waiting[found] = waiting
            self._held[found] += 1
            return found, work


def _run(work):
    """Call what waited; its failure is not that of the thread's message."""
    try:
        work()
    except Exception:
        LOG.exception('an operation that waited for a thread failed')


_shares = Shares()


def install():
    """Share the threads of this process; may be called twice.

    Tacker has no hook around an operation. Its import would register options
    in a process that is not a conductor.
    """
    module = sys.modules.get(_CONDUCTOR)
    for name in _OPERATIONS if module else ():
        operation = getattr(module.Conductor, name)
        if not hasattr(operation, 'is_shared'):
            setattr(module.Conductor, name, _shared(name, operation))
    tested = module and getattr(module.Conductor, _TEST)
    if tested and not hasattr(tested, 'is_shared'):
        setattr(module.Conductor, _TEST, _answered(tested))


def _answered(operation):
    @functools.wraps(operation)
    def shared(conductor, context, **named):
        try:
            return _shares.answer(context.project_id, functools.partial(
                operation, conductor, context, **named))
        except exception.Busy as busy:
            LOG.warning('a subscription is not tested: %s', busy)
            return _TEST_FAILED
    shared.is_shared = True
    return shared


def _shared(name, operation):
    @functools.wraps(operation)
    def shared(conductor, context, *arguments, **named):
        try:
            work = functools.partial(operation, conductor, context,
                                     *arguments, **named)
            _shares.run(context.project_id, work, functools.partial(
                _run_late, work, _id(named), timeutils.utcnow()))
        except exception.Busy as busy:
            if name == _NOTIFY:
                LOG.warning('a notification is not sent: %s', busy)
            elif name == _MODIFY:
                _refuse(context, named['vnf_lcm_opoccs'], busy)
            else:
                raise     # the watcher ends it (stale_operations.py)
    shared.is_shared = True
    return shared


def _run_late(work, operation_id, since):
    """Carry out an operation unless it has ended while it waited.

    The watcher ends one that waits too long, and its user may have retried.
    """
    if operation_id and tacker_db.ended_since(operation_id, since):
        LOG.warning('operation %s: ended while it waited for a thread',
                    operation_id)
    else:
        work()


def _id(named):
    """Return the id of the operation that a message is about, or None."""
    info = named.get('vnf_info') or {}
    operation = info.get('vnf_lcm_op_occ')
    return named.get('vnf_lcm_op_occs_id') or getattr(operation, 'id', None)


def _refuse(context, asked, reason):
    """Store a change of a VNF as failed: nothing of it was done.

    :param asked: what Tacker's API sends about the operation
    """
    LOG.warning('VNF %s: operation %s (%s) refused: %s',
                asked['vnf_instance_id'], asked['id'], tacker_db.MODIFY,
                reason)
    now = timeutils.utcnow()
    operation = objects.VnfLcmOpOcc(
        context, id=asked['id'], vnf_instance_id=asked['vnf_instance_id'],
        operation=tacker_db.MODIFY, tenant_id=asked['tenant_id'],
        operation_state=fields.LcmOccsOperationState.FAILED,
        start_time=now, state_entered_time=now, operation_params='{}',
        is_automatic_invocation=False, is_cancel_pending=False,
        error_point=0)
    operation.create()
    operation.error = objects.ProblemDetails(
        context=context, status=503, detail=str(reason))
    operation.save()    # create() stores no error

# SPDX-License-Identifier: Apache-2.0
"""Judges what an operation asks for before Tacker begins it.

Tacker would answer 202, and the operation would fail later: after it removed
guests, or without the name of a property. The drivers judge what this host
cannot read, such as a package on another host. This thread serves all
projects: it parses no package (judgement.py), and holds no connection to the
database while it waits.
"""

import collections
import contextlib
import datetime
import re

from oslo_config import cfg
from oslo_log import log as logging
from oslo_utils import timeutils
from tacker.common import exceptions as tacker_exceptions
from tacker import objects
from tacker.objects import fields
from tacker.vnflcm import utils as vnflcm_utils

from tacker_clickos import chained
from tacker_clickos import elements
from tacker_clickos import exception
from tacker_clickos import images
from tacker_clickos import judgement
from tacker_clickos import outages
from tacker_clickos import ports
from tacker_clickos import state
from tacker_clickos import stock
from tacker_clickos import tacker_db
from tacker_clickos import vim
from tacker_clickos import vnfds

LOG = logging.getLogger(__name__)

_INSTANTIATED = fields.VnfInstanceState.INSTANTIATED
#: Operations of a project that wait for a conductor or run.
MAX_OPEN = 128
_OPERATION = re.compile(r'/vnf_instances/([^/]+)/(\w+)/?\Z')
#: A failed operation begins again.
_AGAIN = re.compile(r'/vnf_lcm_op_occs/([^/]+)/(?:retry|rollback)/?\Z')
#: An operation that Tacker begins: its project, the id of the VNF, or of the
#: operation that begins again, and the operations of that in progress before.
_Beginning = collections.namedtuple('_Beginning', 'project_id about before')
_beginning = {}


def judge_update(context, path, body):
    """Refuse a change during another one, or that no guest could take.

    :param path: of a PATCH of a VNF
    :param body: its JSON object, as the client sent it
    :raises: ClickOSError
    """
    vnf_id = path.rstrip('/').rpartition('/')[2]
    _require_idle(vnf_id)
    metadata = body.get('metadata')
    sent = isinstance(metadata, dict) and metadata.get(state.PROPERTIES)
    if not sent or {'vnfdId', 'vnfPkgId'} & set(body):
        return
    vnf_instance = _vnf(context, vnf_id)
    if vnf_instance is not None and not vnfds.is_ours(vnf_instance.id):
        raise exception.RequestRefused(
            reason='metadata %s: VNF %s has no guests of ClickOS'
            % (state.PROPERTIES, vnf_instance.id))
    info = vnf_instance and vnf_instance.instantiated_vnf_info
    if info and vnf_instance.instantiation_state == _INSTANTIATED:
        _ask(context, vnf_instance, 'update', info.flavour_id, {
            'guests': judgement.of(info), 'wanted': sent,
            'in_force': state.in_force(vnf_instance)})
        # Another change has begun while this one waited for its turn.
        _require_idle(vnf_id)


def judge(context, path, body):
    """Refuse an operation that cannot succeed.

    :param context: Tacker's, of the request
    :param path: of a POST that routes.py has
    :param body: its JSON object
    :raises: ClickOSError with the status of the answer
    """
    found = _OPERATION.match(path)
    judged = found and _JUDGES.get(found[2])
    if judged:
        vnf_instance = _vnf(context, found[1])
        if vnf_instance is None:
            return
        if vnfds.is_ours(vnf_instance.id):
            judged(context, vnf_instance, body)
        else:
            stock.judge(vnf_instance.id, found[2], body)


def _require_idle(vnf_id):
    """Refuse a change of a VNF while an operation works on it.

    Tacker begins any number of them, and each waits for guests in a thread
    of a conductor. One whose conductor died hinders others only for
    stale_operation_timeout. A change may wait for one other: that one has a
    verdict a moment before it is over.
    """
    timeout = datetime.timedelta(
        seconds=cfg.CONF.clickos.stale_operation_timeout)
    found = tacker_db.open_operations_of(vnf_id, timeutils.utcnow() - timeout)
    found.sort(key=lambda operation: operation[1] == tacker_db.MODIFY)
    if not found or len(found) == 1 and found[0][1] == tacker_db.MODIFY:
        return
    operation_id, name, operation_state = found[0]
    raise exception.InProgress(
        vnf_id=vnf_id, operation_id=operation_id, name=name,
        state=operation_state)


def require_few(context, path):
    """Refuse an operation of a project with too many that are not over.

    :param path: of a POST
    :raises: TooManyRequests
    """
    if _begins(path):
        _require_few(len(tacker_db.open_operations(context.project_id)))


@contextlib.contextmanager
def begun(context, path):
    """Let Tacker begin an operation of a project with few that are not over.

    Others have begun while it waited for its body or its turn. Tacker stores
    an operation a moment later, so those count, too, that it has neither
    stored nor answered.

    :param path: of a POST
    :raises: TooManyRequests; BeginsAgain for one that Tacker retries or rolls
        back already, because it would do both
    """
    found = _begins(path)
    if not found:
        yield
        return
    about = found[1].lower()
    unanswered = _of_project(context.project_id)
    stored = tacker_db.open_operations(context.project_id)
    unanswered |= _of_project(context.project_id)
    if found.re is _AGAIN and any(each.about == about
                                  for each in unanswered.values()):
        raise exception.BeginsAgain(operation_id=about)
    _require_few(len(stored) + _not_stored(unanswered.values(), stored))
    mine = object()
    _beginning[mine] = _Beginning(context.project_id, about,
                                  _of(about, stored))
    try:
        yield
    finally:
        del _beginning[mine]


def _of_project(project_id):
    """Return the operations of a project that Tacker begins."""
    return {key: each for key, each in _beginning.items()
            if each.project_id == project_id}


def _not_stored(beginning, stored):
    """Return how many operations that Tacker begins it has not stored.

    A new one of the VNF, or that begins again, is one of them.
    """
    of_each = collections.defaultdict(list)
    for each in beginning:
        of_each[each.about].append(each.before)
    return sum(max(0, len(before) - len(
        _of(about, stored) - set.intersection(*before)))
        for about, before in of_each.items())


def _of(about, stored):
    """Return the ids of operations of a VNF, or of the operation itself."""
    return {key for key, vnf_id in stored if about in (key, vnf_id)}


def _begins(path):
    """Return a match of a POST that begins an operation, or None."""
    return _OPERATION.match(path) or _AGAIN.match(path)


def _require_few(count):
    if count >= MAX_OPEN:
        raise exception.TooManyRequests(
            reason='operations of VNFs: %d of this project are in progress, '
            'the limit is %d; try again' % (count, MAX_OPEN))


def _vnf(context, vnf_id):
    """Return the VNF instance; None for one that Tacker refuses itself."""
    try:
        return objects.VnfInstance.get_by_id(context, vnf_id)
    except tacker_exceptions.TackerException as error:
        LOG.debug('VNF %s: %s', vnf_id, error)
        return None


def _ask(context, vnf_instance, kind, flavour_id, about):
    """Refuse what the package of a VNF does not allow, if it is here.

    :returns: what judgement.require() does
    """
    try:
        package = vnflcm_utils.get_vnf_package_path(context,
                                                    vnf_instance.vnfd_id)
    except tacker_exceptions.TackerException as error:
        LOG.debug('VNF %s: %s', vnf_instance.id, error)
        return None
    tacker_db.release(context)    # the judgement may wait for its turn
    return judgement.require(context.project_id, judgement.Question(
        kind, package, flavour_id, about))


def _instantiate(context, vnf_instance, body):
    """Refuse property values out of their bounds, and guests without image.
    """
    parameters = body.get('additionalParams')
    if isinstance(parameters, (dict, type(None))):
        guests = _ask(context, vnf_instance, 'values', body.get('flavourId'), {
            'wanted': (parameters or {}).get(state.PROPERTIES) or {}})
        if guests:
            _require_images(context, vnf_instance, body, guests)


def _vims(vnf_instance, body):
    """Return the VIMs of a request, or else those of the VNF."""
    asked = body.get('vimConnectionInfo')
    if not isinstance(asked, list) or not asked:
        return vnf_instance.vim_connection_info
    return [objects.VimConnectionInfo(
        vim_id=asked[0].get('vimId'),
        access_info=asked[0].get('accessInfo') or {}, extra={})]


def _require_images(context, vnf_instance, body, guests):
    """Refuse a guest with elements that no image has.

    :param guests: see judgement.require()
    """
    try:
        access_info = vnflcm_utils.get_vim(
            context, _vims(vnf_instance, body))['access_info']
        tacker_db.release(context)
        with outages.ignored():
            connection = vim.connect(access_info)
            for image, groups in _distinct(guests):
                images.choose(connection, image, groups)
    except exception.NoImage:
        raise
    except Exception as error:   # Tacker or the driver asks again
        # It may quote the package, and a log has a line for an event.
        LOG.info('the images of a VNF are not known: %.400r', str(error))


def _distinct(guests):
    """Return the first pairs, each once: Glance is asked for each of them."""
    found = []
    for each in guests:
        if each not in found and len(found) < elements.MAX_CONFIGURATIONS:
            found.append(each)
    return found


def _scale(context, vnf_instance, body):
    """Refuse a level that the aspect does not have."""
    info = vnf_instance.instantiated_vnf_info
    aspect, steps = body.get('aspectId'), body.get('numberOfSteps', 1)
    level = next((each.scale_level
                  for each in (info and info.scale_status) or ()
                  if each.aspect_id == aspect), None)
    if level is not None and type(steps) is int:
        _ask(context, vnf_instance, 'level', info.flavour_id, {
            'aspect': aspect, 'level': level,
            'steps': -steps if body.get('type') == 'SCALE_IN' else steps})


def _terminate(context, vnf_instance, _body):
    """Refuse while a chain has the VNF, before a guest is gone."""
    try:
        access_info = vnflcm_utils.get_vim(
            context, vnf_instance.vim_connection_info)['access_info']
        tacker_db.release(context)
        with outages.ignored():
            connection = vim.connect(access_info)
            existing = ports.of_vnf(connection, vnf_instance.id)
            chained.require_none(connection, {
                port.id: name for name, port in existing.items()})
    except exception.PortInChain:
        raise
    except Exception as error:   # the driver asks again
        LOG.info('VNF %s: its chains are not known: %s', vnf_instance.id,
                 error)


_JUDGES = {'instantiate': _instantiate, 'scale': _scale,
           'terminate': _terminate}

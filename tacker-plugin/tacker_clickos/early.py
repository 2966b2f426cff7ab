# SPDX-License-Identifier: Apache-2.0
"""Judges what an operation asks for before Tacker begins it.

Tacker would answer 202, and the operation would fail later: after it removed
guests, or without the name of a property. The drivers judge what this host
cannot read, such as a package on another host.
"""

import re

from oslo_log import log as logging
from tacker.common import exceptions as tacker_exceptions
from tacker import objects
from tacker.objects import fields
from tacker.vnflcm import utils as vnflcm_utils

from tacker_clickos import chained
from tacker_clickos import exception
from tacker_clickos import ports
from tacker_clickos import state
from tacker_clickos import update
from tacker_clickos import vim
from tacker_clickos.vnfd import loader
from tacker_clickos.vnfd import model
from tacker_clickos.vnfd import values as vnfd_values

LOG = logging.getLogger(__name__)

_INSTANTIATED = fields.VnfInstanceState.INSTANTIATED
_OPERATION = re.compile(r'/vnf_instances/([^/]+)/(\w+)/?\Z')


def judge_update(context, path, body):
    """Refuse an update of properties that no guest could take.

    :param path: of a PATCH of a VNF
    :param body: its JSON object, as the client sent it
    :raises: ClickOSError
    """
    metadata = body.get('metadata')
    sent = isinstance(metadata, dict) and metadata.get(state.PROPERTIES)
    if not sent or {'vnfdId', 'vnfPkgId'} & set(body):
        return
    vnf_instance = _vnf(context, path.rstrip('/').rpartition('/')[2])
    info = vnf_instance and vnf_instance.instantiated_vnf_info
    if not info or vnf_instance.instantiation_state != _INSTANTIATED:
        return
    flavour = _flavour(context, vnf_instance, info.flavour_id)
    if flavour:
        wanted = update.parse(sent) if isinstance(sent, str) else sent
        update.Update(flavour.vdus, info, state.in_force(vnf_instance),
                      wanted).judge()


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
        if vnf_instance is not None:
            judged(context, vnf_instance, body)


def _vnf(context, vnf_id):
    """Return the VNF instance; None for one that Tacker refuses itself."""
    try:
        return objects.VnfInstance.get_by_id(context, vnf_id)
    except tacker_exceptions.TackerException as error:
        LOG.debug('VNF %s: %s', vnf_id, error)
        return None


def _flavour(context, vnf_instance, flavour_id):
    """Return the model.Flavour of a VNF's package, None without one here."""
    try:
        return loader.load(vnflcm_utils.get_vnf_package_path(
            context, vnf_instance.vnfd_id), flavour_id)
    except (exception.ClickOSError, tacker_exceptions.TackerException,
            OSError) as error:
        LOG.debug('VNF %s: %s', vnf_instance.id, error)
        return None


def _instantiate(context, vnf_instance, body):
    """Refuse property values out of their bounds."""
    flavour = _flavour(context, vnf_instance, body.get('flavourId'))
    parameters = body.get('additionalParams')
    if flavour is None or not isinstance(parameters, (dict, type(None))):
        return
    wanted = (parameters or {}).get(state.PROPERTIES) or {}
    update.check_size(flavour.vdus, vnfd_values.merge(
        model.properties(flavour.vdus), {}, wanted))


def _scale(context, vnf_instance, body):
    """Refuse a level that the aspect does not have."""
    info = vnf_instance.instantiated_vnf_info
    flavour = info and _flavour(context, vnf_instance, info.flavour_id)
    name, steps = body.get('aspectId'), body.get('numberOfSteps', 1)
    levels = {each.aspect_id: each.scale_level
              for each in (info and info.scale_status) or ()}
    if not flavour or name not in levels or type(steps) is not int:
        return
    down = body.get('type') == 'SCALE_IN'
    highest = flavour.scaling.aspects[name].max_level
    wanted = levels[name] + (-steps if down else steps)
    if not 0 <= wanted <= highest:
        raise exception.RequestRefused(
            reason='aspect %s: level %d is outside 0 to %d; the VNF is at'
            ' level %d' % (name, wanted, highest, levels[name]))


def _terminate(context, vnf_instance, _body):
    """Refuse while a chain has the VNF, before a guest is gone."""
    try:
        connection = vim.connect(vnflcm_utils.get_vim(
            context, vnf_instance.vim_connection_info)['access_info'])
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

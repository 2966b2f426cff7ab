# SPDX-License-Identifier: Apache-2.0
"""Limits that the guests of a VDU share (docs/adr/0117).

clickos-api divides them. The drivers say which guests there are: before the
flows of new guests arrive, and after those of removed ones have ended.
"""

from clickos_client import vnf
from oslo_log import log as logging

from tacker_clickos import exception
from tacker_clickos.vnfd import model

LOG = logging.getLogger(__name__)

_RATE, _QUOTA = 'rate', 'quota'


def declare(api, vnf_id, vdus, values, server_ids):
    """Tell clickos-api the limits of a VNF and their guests.

    :param api: clickos_api.Client
    :param vdus: {name: model.Vdu}
    :param values: what vnfd.values.merge() returned
    :param server_ids: {name of a guest: its server}, of all guests
    :raises: ClickOSError
    """
    for name, vdu in vdus.items():
        limits = [{'name': prop.name, 'handler': prop.handler,
                   'kind': _RATE if prop.type == 'rate' else _QUOTA,
                   'total': values[prop.name]}
                  for prop in model.shared(vdu).values()]
        members = [server_id for guest, server_id in server_ids.items()
                   if guest.rpartition('-')[0] == name and server_id]
        if limits:
            api.set_limits(vnf.limits_group(vnf_id, name), limits, members)


def release(api, vnf_id, vdus, values, server_ids):
    """Let guests that are to be removed give back what they did not use.

    One that does not answer is removed all the same; clickos-api counts what
    it may have used as used.

    :param server_ids: of the guests that stay, as of declare()
    """
    try:
        declare(api, vnf_id, vdus, values, server_ids)
    except exception.ClickOSError as error:
        LOG.warning('VNF %s: removed guests give no share back: %s', vnf_id,
                    error)


def forget(api, vnf_id, vdus):
    """Forget the limits of a VNF without guests.

    :param vdus: names of the VDUs that have some
    """
    for name in vdus:
        api.delete_limits(vnf.limits_group(vnf_id, name))

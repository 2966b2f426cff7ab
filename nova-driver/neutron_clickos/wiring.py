# SPDX-License-Identifier: Apache-2.0
"""The status of ports: active while the switch of their host forwards.

The agent of the host says which ports those are. ML2's own answers to
agents complete the provisioning of a port (docs/adr/0068). Nova and the DHCP
agents hear it as they do from other agents.
"""

from neutron.db import models_v2
from neutron.plugins.ml2 import models
from neutron.plugins.ml2 import rpc
from neutron_lib import constants
from neutron_lib import context as neutron_context
from neutron_lib.db import api as db_api
from neutron_lib.plugins import directory
from oslo_log import log as logging

LOG = logging.getLogger(__name__)


def active(host):
    """:returns: ids of the active ports that are bound to a host, ordered"""
    return sorted(_bound(
        host, models_v2.Port.status == constants.PORT_STATUS_ACTIVE))


def report(host, up, down):
    """Set the status of ports; those that are not bound to the host stay.

    :param host: the agent's host.
    :param up: ids of ports that the switch forwards for
    :param down: ids of ports that it does not forward for
    """
    context = neutron_context.get_admin_context()
    bound = _bound(host, models_v2.Port.id.in_([*up, *down]))
    for ports, change in ((up, 'update_device_up'),
                          (down, 'update_device_down')):
        for port in bound.intersection(ports):
            _change(context, change, port, host)


def _change(context, name, port, host):
    plugin = directory.get_plugin()
    answers = rpc.RpcCallbacks(plugin.notifier, plugin.type_manager)
    try:
        getattr(answers, name)(context, device=port, host=host)
    except Exception:
        # The agent reports again; a port must not hold up the others.
        LOG.exception('%(name)s of port %(port)s failed',
                      {'name': name, 'port': port})


def _bound(host, condition):
    """:returns: ids of the ports bound to a host that meet a condition"""
    port, binding = models_v2.Port, models.PortBinding
    context = neutron_context.get_admin_context()
    with db_api.CONTEXT_READER.using(context) as session:
        rows = session.query(port.id).join(
            binding, binding.port_id == port.id).filter(
                binding.host == host, binding.vif_type == 'vale',
                binding.status == constants.ACTIVE, condition).all()
    return {row.id for row in rows}

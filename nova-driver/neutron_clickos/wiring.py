# SPDX-License-Identifier: Apache-2.0
"""The status of ports: active while the switch of their host forwards.

The agent of the host says which ports those are. ML2's own answers to
agents complete the provisioning of a port (docs/adr/0021). Nova and the DHCP
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

_IS_HERE = models.PortBinding.status == constants.ACTIVE


def active(host):
    """:returns: ids of the active ports that are bound to a host, ordered"""
    return sorted(_bound(
        host, _IS_HERE, models_v2.Port.status == constants.PORT_STATUS_ACTIVE))


def report(host, up, down):
    """Set the status of ports; those that are not bound to the host stay.

    A port of a guest that moves here stays, too: its binding is inactive.
    ML2 tells Nova that it forwards, and Nova moves the guest then.

    :param host: the agent's host.
    :param up: ids of ports that the switch forwards for
    :param down: ids of ports that it does not forward for
    """
    context = neutron_context.get_admin_context()
    for port in _bound(host, models_v2.Port.id.in_(up)):
        _change(context, 'update_device_up', port, host)
    for port in _bound(host, _IS_HERE, models_v2.Port.id.in_(down)):
        _change(context, 'update_device_down', port, host)


def _change(context, name, port, host):
    plugin = directory.get_plugin()
    answers = rpc.RpcCallbacks(plugin.notifier, plugin.type_manager)
    try:
        getattr(answers, name)(context, device=port, host=host)
    except Exception:
        # The agent reports again; a port must not hold up the others.
        LOG.exception('%(name)s of port %(port)s failed',
                      {'name': name, 'port': port})


def _bound(host, *conditions):
    """:returns: ids of the ports bound to a host that meet conditions"""
    port, binding = models_v2.Port, models.PortBinding
    context = neutron_context.get_admin_context()
    with db_api.CONTEXT_READER.using(context) as session:
        rows = session.query(port.id).join(
            binding, binding.port_id == port.id).filter(
                binding.host == host, binding.vif_type == 'vale',
                *conditions).all()
    return {row.id for row in rows}

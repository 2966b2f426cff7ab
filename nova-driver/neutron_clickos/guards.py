# SPDX-License-Identifier: Apache-2.0
"""The addresses that ports may use, as arguments of ``port-guard``."""

from neutron.plugins.ml2 import models
from neutron_lib import context as neutron_context
from neutron_lib.db import api as db_api
from oslo_serialization import jsonutils


def of_ports(host, port_ids):
    """Return what the bindings of ports to a host allow.

    :param host: the agent's host.
    :param port_ids: ids of ports, those with a binding of ours are answered
    :returns: dict allowed, port_security, maybe dhcp_server by port id
    """
    context, binding = neutron_context.get_admin_context(), models.PortBinding
    with db_api.CONTEXT_READER.using(context) as session:
        rows = session.query(binding.port_id, binding.vif_details).filter(
            binding.port_id.in_(port_ids), binding.host == host,
            binding.vif_type == 'vale').all()
    return {row.port_id: _guard(jsonutils.loads(row.vif_details))
            for row in rows if row.vif_details}


def _guard(details):
    # An agent of an older release knows no roles.
    roles = {'dhcp_server': True} if details.get('vale_dhcp_server') else {}
    return {'allowed': details['vale_allowed'],
            'port_security': details['vale_port_security'], **roles}

# SPDX-License-Identifier: Apache-2.0
"""Networks of VNFs: those of their ports, and those that a launch makes."""

import dataclasses
import ipaddress
import logging

from clickos_client import chains
from clickos_client import connections
from django.utils.translation import gettext_lazy as _
from horizon import exceptions
from openstack_dashboard import api

LOG = logging.getLogger(__name__)


def connected(request, vnfs):
    """Return VNFs with their connections, after requests for all of them.

    Without Neutron's answer they have none.
    """
    try:
        query = {'project_id': request.user.tenant_id}
        if len(vnfs) == 1:
            query['description'] = chains.VNF_MARK + vnfs[0].id
        ports = api.neutron.port_list(request, **query) if vnfs else []
        names = {network.id: network.name_or_id for network
                 in api.neutron.network_list(request)} if ports else {}
    except Exception:
        exceptions.handle(request, _('Neutron does not list ports.'))
        return vnfs
    marked = {}
    for port in ports:
        # On a network of the project others have ports, with any description.
        if port.project_id == request.user.tenant_id:
            marked.setdefault(port.description, []).append(port)
    return [dataclasses.replace(vnf, connections=connections.of_vnf(
        vnf.id, [guest.name for guest in vnf.guests],
        marked.get(chains.VNF_MARK + vnf.id, ()), names)) for vnf in vnfs]


def make(request, name, prefixes, made):
    """Make a network with a subnet for each prefix; return its id.

    :param prefixes: as text, of either family
    :param made: gets the network's id, also if a subnet fails
    """
    network = api.neutron.network_create(request, name=name)
    made.append(network.id)
    for prefix in prefixes:
        api.neutron.subnet_create(
            request, network.id, cidr=prefix, name=name, enable_dhcp=False,
            ip_version=ipaddress.ip_network(prefix).version, gateway_ip=None)
    return network.id


def remove(request, made):
    """Remove networks of a launch that failed."""
    for network_id in made:
        try:
            api.neutron.network_delete(request, network_id)
        except Exception:
            LOG.warning('Network %s stays', network_id, exc_info=True)

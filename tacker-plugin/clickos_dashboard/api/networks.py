# SPDX-License-Identifier: Apache-2.0
"""Networks that the launch of a VNF makes."""

import logging

from openstack_dashboard import api

LOG = logging.getLogger(__name__)


def make(request, name, cidr, made):
    """Make a network with one IPv4 subnet; return its id.

    :param made: gets the network's id, also if the subnet fails
    """
    network = api.neutron.network_create(request, name=name)
    made.append(network.id)
    api.neutron.subnet_create(request, network.id, cidr=cidr, ip_version=4,
                              name=name, enable_dhcp=False, gateway_ip=None)
    return network.id


def remove(request, made):
    """Remove networks of a launch that failed."""
    for network_id in made:
        try:
            api.neutron.network_delete(request, network_id)
        except Exception:
            LOG.warning('Network %s stays', network_id, exc_info=True)

# SPDX-License-Identifier: Apache-2.0
"""The tenant's two networks, one on each side of a VNF."""

import ipaddress

#: name of the network: its subnet. No DHCP, no gateway: the router between
#: them is the guest.
NETWORKS = {'left': '10.10.1.0/24', 'right': '10.10.2.0/24'}
#: The addresses that Neutron gives away in a subnet, by place; a VNF asks for
#: others, such as .1, by name.
_POOL = (100, 199)


def ensure_networks(demo):
    """Make the networks and their subnets, as the tenant."""
    for name, cidr in NETWORKS.items():
        network = demo.network.find_network(name) or \
            demo.network.create_network(name=name)
        if not demo.network.find_subnet(name, network_id=network.id):
            demo.network.create_subnet(
                name=name, network_id=network.id, ip_version=4, cidr=cidr,
                is_dhcp_enabled=False, gateway_ip=None,
                allocation_pools=[_pool(cidr)])


def _pool(cidr):
    first, last = (str(ipaddress.ip_network(cidr)[at]) for at in _POOL)
    return {'start': first, 'end': last}

# SPDX-License-Identifier: Apache-2.0
"""Neutron networks of a VNF's own, for its internal virtual links.

As with ports, name and description find them again.
"""

import ipaddress

from openstack import exceptions as sdk_exceptions

from tacker_clickos import exception
from tacker_clickos import outages
from tacker_clickos import own
from tacker_clickos import ports


def of_vnf(connection, vnf_id):
    """Return {link name: network} of a VNF."""
    return {network.name.removesuffix('-' + vnf_id): network for network in
            own.networks(connection, ports.description(vnf_id))}


def ensure(connection, vnf_id, wanted, record):
    """Return {link name: network id}; make networks that lack.

    :param wanted: {link name: model.InternalLink}
    :param record: the VNF's state.Record
    :raises: ResourceNotUsable
    """
    existing = of_vnf(connection, vnf_id)
    found = record.networks
    for name, link in wanted.items():
        network = (own.network(connection, found.get(name))
                   or existing.get(name)
                   or _create(connection, vnf_id, name))
        if not list(connection.network.subnets(network_id=network.id)):
            _add_subnet(connection, name, network, link)
        found[name] = network.id
    return {name: found[name] for name in wanted}


def _create(connection, vnf_id, name):
    try:
        return outages.once(
            lambda: of_vnf(connection, vnf_id).get(name),
            lambda: connection.network.create_network(
                name='%s-%s' % (name, vnf_id),
                description=ports.description(vnf_id)))
    except sdk_exceptions.HttpException as error:
        raise _unusable(name, error)


def _add_subnet(connection, name, network, link):
    try:
        outages.once(
            lambda: next(iter(connection.network.subnets(
                network_id=network.id)), None),
            lambda: connection.network.create_subnet(
                network_id=network.id, cidr=link.cidr, is_dhcp_enabled=False,
                gateway_ip=None,
                ip_version=ipaddress.ip_network(link.cidr).version))
    except sdk_exceptions.HttpException as error:
        raise _unusable(name, error)


def _unusable(name, error):
    return exception.ResourceNotUsable(kind='virtual link', name=name,
                                       reason=error.details or str(error))


def remove(connection, vnf_id):
    """Delete the networks of a VNF, whose ports are gone."""
    for network in own.networks(connection, ports.description(vnf_id)):
        connection.network.delete_network(network.id, ignore_missing=True)

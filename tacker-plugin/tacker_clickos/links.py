# SPDX-License-Identifier: Apache-2.0
"""Which network and addresses a connection point gets, from the request."""

import dataclasses

from tacker_clickos import exception


@dataclasses.dataclass(frozen=True)
class Link:
    """A connection point's network and the addresses asked for, if any."""

    network_id: str
    mac: str = None
    fixed_ips: tuple = ()


def resolve(vdu, request):
    """Return {CP name: Link} for a VDU.

    :param vdu: model.Vdu
    :param request: Tacker's InstantiateVnfRequest
    :raises: ResourceNotUsable when a connection point has no network
    """
    given = {}
    for virtual_link in request.ext_virtual_links or []:
        for ext_cp in virtual_link.ext_cps or []:
            given[ext_cp.cpd_id] = _link(virtual_link, ext_cp)
    missing = [cp for cp in vdu.cps if cp not in given]
    if missing:
        raise _unusable(missing[0], 'extVirtualLinks name no network for it')
    return {cp: given[cp] for cp in vdu.cps}


def _unusable(cp, reason):
    return exception.ResourceNotUsable(kind='connection point', name=cp,
                                       reason=reason)


def _link(virtual_link, ext_cp):
    mac, fixed_ips = None, []
    for config in ext_cp.cp_config or []:
        if config.link_port_id:
            raise _unusable(ext_cp.cpd_id, 'linkPortId cannot be used; leave '
                                           'it out and a port is made')
        for data in config.cp_protocol_data or []:
            over_ethernet = data.ip_over_ethernet
            if over_ethernet is not None:
                mac = over_ethernet.mac_address or mac
                fixed_ips += _fixed_ips(over_ethernet.ip_addresses or [])
    return Link(virtual_link.resource_id, mac, tuple(fixed_ips))


def _fixed_ips(addresses):
    for wanted in addresses:
        subnet = {'subnet_id': wanted.subnet_id} if wanted.subnet_id else {}
        for address in wanted.fixed_addresses or []:
            yield dict(subnet, ip_address=address)
        if subnet and not wanted.fixed_addresses:
            yield subnet

# SPDX-License-Identifier: Apache-2.0
"""Which network and addresses a connection point gets, from the request."""

import dataclasses
import sys

from tacker_clickos import exception


@dataclasses.dataclass(frozen=True)
class Link:
    """A connection point's network and the addresses asked for, if any."""

    network_id: str
    mac: str = None
    fixed_ips: tuple = ()
    #: model.InternalLink, if the network is the VNF's own
    internal: object = None


def resolve(vdu, request, number=0):
    """Return {CP name: Link} for a guest of a VDU.

    The guest takes the entry of cpConfig with its number. Without one, its
    addresses are free ones of the same subnets: no two guests share one.

    :param vdu: model.Vdu
    :param request: Tacker's InstantiateVnfRequest
    :param number: the guest's number in its VDU, from 0
    :raises: ResourceNotUsable when a connection point has no network
    """
    networks, configs = {}, {}
    for virtual_link in request.ext_virtual_links or []:
        for ext_cp in virtual_link.ext_cps or []:
            networks[ext_cp.cpd_id] = virtual_link.resource_id
            configs.setdefault(ext_cp.cpd_id, []).extend(
                ext_cp.cp_config or [])
    own = _internal(vdu, request, networks)
    missing = [cp for cp in vdu.cps if cp not in networks and cp not in own]
    if missing:
        raise _unusable(missing[0], 'extVirtualLinks name no network for it')
    return {cp: own.get(cp) or _link(cp, networks[cp], configs[cp], number)
            for cp in vdu.cps}


def of_guest(vdu, request, number):
    """Return {CP name: Link} for the ports of a guest.

    A guest of a pair gets free addresses: those that the request asks for
    are the pair's.
    """
    return resolve(vdu, request,
                   sys.maxsize if vdu.configuration.pair else number)


def of_pair(vdu, request):
    """Return {CP name: Link} of the addresses of a pair.

    :returns: {} for a VDU without one
    :raises: ResourceNotUsable for a MAC address, which a virtual router has
        by its number
    """
    found = resolve(vdu, request) if vdu.configuration.pair else {}
    for cp, link in found.items():
        if link.mac:
            raise _unusable(cp, 'it is of a pair, whose virtual router has a '
                            'MAC address of its own; leave macAddress out')
    return found


def _internal(vdu, request, networks):
    """Return {CP: Link} of the internal links; the request may manage one."""
    managed = {link.vnf_virtual_link_desc_id: link.resource_id for link in
               getattr(request, 'ext_managed_virtual_links', None) or []}
    for cp, link in vdu.internal.items():
        if cp in networks:
            raise _unusable(cp, 'it is on the internal link %s; no request '
                            'connects it' % link.name)
    return {cp: Link(managed.get(link.name), internal=link)
            for cp, link in vdu.internal.items()}


def _unusable(cp, reason):
    return exception.ResourceNotUsable(kind='connection point', name=cp,
                                       reason=reason)


def _link(cp, network_id, configs, number):
    if any(config.link_port_id for config in configs):
        raise _unusable(cp, 'linkPortId cannot be used; leave '
                            'it out and a port is made')
    is_own = number < len(configs)
    mac, fixed_ips = None, []
    for data in (configs[number if is_own else -1].cp_protocol_data or []
                 if configs else []):
        over_ethernet = data.ip_over_ethernet
        if over_ethernet is not None:
            mac = over_ethernet.mac_address or mac
            fixed_ips += _fixed_ips(over_ethernet.ip_addresses or [], is_own)
    return Link(network_id, mac if is_own else None,
                tuple(fixed_ips))


def _fixed_ips(addresses, is_own):
    for wanted in addresses:
        subnet = {'subnet_id': wanted.subnet_id} if wanted.subnet_id else {}
        fixed = wanted.fixed_addresses or [] if is_own else []
        for address in fixed:
            yield dict(subnet, ip_address=address)
        if subnet and not fixed:
            yield subnet

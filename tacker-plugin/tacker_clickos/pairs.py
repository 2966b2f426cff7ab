# SPDX-License-Identifier: Apache-2.0
"""Pairs of guests, of which one forwards and the other has its flows.

A VDU with ``ha: pair`` has two guests. Each connection point has a virtual
address, which a port without a server holds: its MAC is that of a VRRP router
(RFC 9568, section 7.3), and Neutron lets no other port of the network have
it. Both guests may send from it. The elements VRRP, VRRPPort and VRRPGate
stand between each device and the unchanged configuration.
"""

import base64
import dataclasses
import os

from tacker_clickos import exception
from tacker_clickos import own
from tacker_clickos import ports
from tacker_clickos.vnfd import model

#: The first one becomes active if both start at the same time.
_PRIORITIES = (200, 100)
#: Seconds between advertisements: a guest takes over after three and a part.
_INTERVAL_S = '0.2'
#: How the addresses of virtual routers of an IP version begin; they end with
#: their numbers.
_MACS = {4: '00:00:5e:00:01:', 6: '00:00:5e:00:02:'}
_VRIDS = range(1, 256)
_KEY_BYTES = 32
#: No server has such a port. No name of a VDU or connection point has a dot.
_VIRTUAL = 'virtual.'


@dataclasses.dataclass(frozen=True)
class Side:
    """A connection point of a pair.

    :param virtual: the port that holds the address of both
    :param own: the port of the guest
    :param peer: the port of the other guest
    """

    virtual: object
    own: object
    peer: object


def number(name):
    """Return a guest's number in its pair, by its name such as VDU1-0."""
    return int(name.rpartition('-')[2])


def other(name):
    """Return the name of the other guest of a pair."""
    vdu, _, own = name.rpartition('-')
    return '%s-%d' % (vdu, 1 - int(own))


def virtual_name(vdu, cp):
    """Return the name of the port of a virtual address.

    :param vdu: name of the VDU
    """
    return '%s%s.%s' % (_VIRTUAL, vdu, cp)


def is_virtual(name):
    """Return whether a port's name is that of a virtual address."""
    return name.startswith(_VIRTUAL)


def new_key():
    """Return a key with which two guests know each other."""
    return base64.b64encode(os.urandom(_KEY_BYTES)).decode()


def placement(vdu):
    """Return the rule of a VDU's guests; those of a pair have two hosts.

    Where there is one host only they share it.
    """
    if vdu.placement or not vdu.configuration.pair:
        return vdu.placement
    return model.Placement('pair.%s' % vdu.name, 'soft-anti-affinity',
                           (vdu.name,))


def require_addresses(connection, wanted):
    """Refuse networks that give a pair no address.

    :param wanted: {port name: links.Link} of virtual addresses to be made
    :raises: ResourceNotUsable
    """
    for name, link in wanted.items():
        if not ports.versions(connection, link):
            raise _unusable(name, 'has a network without a subnet')


def virtual_port(connection, vnf_id, vdu, cp, link):
    """Return the port of a virtual address; one of an earlier try stays.

    :param link: links.Link with the addresses that the request asks for
    :raises: ResourceNotUsable
    """
    name = virtual_name(vdu.name, cp)
    return ports.of_vnf(connection, vnf_id).get(name) or reserve(
        connection, vnf_id, name, link)


def reserve(connection, vnf_id, name, link):
    """Make the port of a virtual address, with the first MAC that is free.

    The virtual router is one of IPv4 if it has such an address; those of
    IPv6 go with it. Neutron may give other addresses than the subnets say:
    some are for its own routers alone.

    :raises: ResourceNotUsable
    """
    wanted = min(ports.versions(connection, link), default=4)
    port = _reserve(connection, vnf_id, name, link, wanted)
    given = 4 if ports.is_of_ipv4(port) else 6
    if given == wanted:
        return port
    ports.delete(connection, [port])
    return _reserve(connection, vnf_id, name, link, given)


def _reserve(connection, vnf_id, name, link, version):
    for vrid in _VRIDS:
        mac = '%s%02x' % (_MACS[version], vrid)
        if own.has_mac(connection, link.network_id, mac):
            continue
        try:
            return ports.reserve(connection, vnf_id, name, link, mac)
        except exception.ResourceNotUsable:
            # Another pair may have taken it meanwhile.
            if not own.has_mac(connection, link.network_id, mac):
                raise
    raise exception.ResourceNotUsable(
        kind='port', name=name, reason='its network has %d virtual routers, '
        'which is the most' % len(_VRIDS))


def statements(guest, sides, key):
    """Return what stands in front of the configuration of a guest.

    Each FromDevice and ToDevice of the configuration passes the pair's
    elements: a class that is defined again refers to the one before.

    :param guest: its name
    :param sides: [Side] in vif order
    :raises: ResourceNotUsable if a guest has no address for advertisements
    """
    arguments = [_side(side) for side in sides] + [
        'PRIORITY %d' % _PRIORITIES[number(guest)],
        'INTERVAL %s' % _INTERVAL_S, 'PREEMPT false', 'KEY %s' % key]
    return ('vrrp :: VRRP(%s);\n'
            'elementclass FromDevice { $vif | FromDevice($vif)\n'
            '    -> port :: VRRPPort(vrrp, $vif) -> output;\n'
            '    port[1] -> ToDevice($vif) }\n'
            'elementclass ToDevice { $vif |\n'
            '    input -> VRRPGate(vrrp) -> ToDevice($vif) }\n'
            % ',\n              '.join(arguments))


def _side(side):
    vrid = int(side.virtual.mac_address.rpartition(':')[2], 16)
    addresses = [fixed['ip_address'] for fixed in side.virtual.fixed_ips]
    addresses.sort(key=lambda address: ':' in address)
    if not ports.is_of_ipv4(side.virtual):
        addresses.insert(0, ports.link_local(side.virtual.mac_address))
    words = [str(vrid)]
    for port in (side.own, side.peer):
        words += [_address(port, side.virtual), port.mac_address]
    return ' '.join(words + addresses)


def _address(port, virtual):
    found = ports.advertiser(port, virtual)
    if not found:
        raise _unusable(port.name, 'has no IPv4 address, and the address of '
                        'both guests is one')
    return found


def _unusable(name, reason):
    return exception.ResourceNotUsable(kind='port', name=name, reason=reason)

# SPDX-License-Identifier: Apache-2.0
"""The Neutron ports of a VNF.

A port is found again by its name and by the description that names the VNF,
so nothing is lost when the conductor dies half-way.
"""

import contextlib
import ipaddress

from clickos_client import hop_tags
from openstack import exceptions as sdk_exceptions
from oslo_log import log as logging
from oslo_utils import netutils

from tacker_clickos.clickgen import prelude
from tacker_clickos import clickos_api
from tacker_clickos import exception
from tacker_clickos import outages
from tacker_clickos import own

LOG = logging.getLogger(__name__)

#: The security group of a project's VNFs.
GROUP = 'clickos-vnf'
#: How Nova begins the owner of a server's port.
_COMPUTE = 'compute:'
#: The sources that a routed VNF forwards. Neutron takes no pair that has
#: multicast addresses in it, and ten pairs of a port. For IPv6: global unicast
#: (RFC 4291), unique local (RFC 4193), translated IPv4 (RFC 6052, 8215).
_EVERYWHERE = {4: ['0.0.0.0/0'], 6: ['2000::/3', 'fc00::/7', '64:ff9b::/32']}
#: Subnets of IPv6 from which Neutron gives each port of their network an
#: address, whatever the port asks for.
_AUTOMATIC = ('slaac', 'dhcpv6-stateless')


def description(vnf_id):
    """Return the mark on every port of a VNF."""
    return 'clickos-vnf:%s' % vnf_id


def of_vnf(connection, vnf_id):
    """Return {port name: port} of a VNF."""
    return {port.name: port for port in all_of_vnf(connection, vnf_id)}


def all_of_vnf(connection, vnf_id):
    """Return the ports of a VNF; a lost answer can make two of one name."""
    return own.ports(connection, description(vnf_id))


def create(connection, vnf_id, name, link, vdu, cp, record, virtual=None):
    """Create a port.

    A routed VNF sends packets with the addresses of others: any source
    address is allowed with the port's own MAC. A transparent one sends and
    receives frames of others, so its ports have no port security. Neutron
    lets the owner of the network switch it off. The tags of a port tell
    chains which of these the VNF is (docs/interfaces.md).

    :param link: links.Link: network and wanted addresses
    :param vdu: model.Vdu
    :param cp: name of the connection point
    :param record: the VNF's state.Record
    :param virtual: of a pair's guest, the port of the address of both
    """
    configuration = vdu.configuration
    wanted = dict(network_id=link.network_id, name=name,
                  description=description(vnf_id),
                  tags=_tags(configuration))
    if link.mac:
        wanted['mac_address'] = link.mac
    if link.fixed_ips:
        wanted['fixed_ips'] = list(link.fixed_ips)
    networks = _forwarded(connection, link.network_id, vdu, cp)
    if virtual:
        wanted['allowed_address_pairs'] = _of_both(virtual, networks)
    elif networks:
        wanted['allowed_address_pairs'] = [
            {'ip_address': network} for network in networks]
    try:
        if configuration.transparent:
            wanted.update(port_security_enabled=False, security_groups=[])
        else:
            wanted['security_groups'] = [_open_group(connection, record)]
        port = outages.once(
            lambda: of_vnf(connection, vnf_id).get(name),
            lambda: connection.network.create_port(**wanted))
        if virtual:
            settle_pairs(connection, port, vdu, cp, virtual,
                         {virtual.mac_address})
        declare(connection, port, vdu, cp)
    except sdk_exceptions.HttpException as error:
        raise exception.ResourceNotUsable(kind='port', name=name,
                                          reason=error.details or str(error))
    return port


def _of_both(virtual, networks, own=None):
    """Return the pairs of a port: its guest may send as the virtual router.

    :param networks: of the sources that the guest forwards
    :param own: the address of its advertisements. It gets no others of its
        subnet, and no other link-local ones: routers have such
    """
    ips = [fixed['ip_address'] for fixed in virtual.fixed_ips or []]
    if own and not (networks and is_of_ipv4(virtual)):
        ips.append(own)
    return [{'ip_address': ip, 'mac_address': virtual.mac_address}
            for ip in ips + networks]


def advertiser(port, virtual):
    """Return the address from which a pair's guest advertises itself.

    :param virtual: the port of the address of both
    :returns: None for a port that has none of the IP version
    """
    if not is_of_ipv4(virtual):
        return link_local(port.mac_address)
    return next((fixed['ip_address'] for fixed in port.fixed_ips or []
                 if ':' not in fixed['ip_address']), None)


def link_local(mac):
    """Return the IPv6 address of an interface (RFC 4291, appendix A)."""
    return str(netutils.get_ipv6_addr_by_EUI64('fe80::/64', mac))


def is_of_ipv4(port):
    """Return whether one of a port's addresses is of IPv4."""
    return any(':' not in fixed['ip_address']
               for fixed in port.fixed_ips or [])


def settle_pairs(connection, port, vdu, cp, virtual, routers):
    """Let a port's guest send as its virtual router, and as no other one.

    The package may be another one than that of the guest before. What the
    project itself allows stays.

    :param virtual: as of create()
    :param routers: MAC addresses of the virtual routers of the VNF
    """
    found = port.allowed_address_pairs or []
    wanted = [pair for pair in found
              if pair.get('mac_address') not in routers]
    if virtual:
        wanted += _of_both(
            virtual, _forwarded(connection, port.network_id, vdu, cp),
            advertiser(port, virtual))
    if _places(wanted) != _places(found):
        connection.network.update_port(port.id, allowed_address_pairs=wanted)


def _places(address_pairs):
    return {(pair['ip_address'], pair.get('mac_address'))
            for pair in address_pairs}


def reserve(connection, vnf_id, name, link, mac):
    """Make a port that no server gets: it reserves addresses.

    :param link: links.Link: network and wanted addresses
    :raises: ResourceNotUsable
    """
    wanted = dict(network_id=link.network_id, name=name, mac_address=mac,
                  description=description(vnf_id))
    if link.fixed_ips:
        wanted['fixed_ips'] = list(link.fixed_ips)
    try:
        return outages.once(
            lambda: of_vnf(connection, vnf_id).get(name),
            lambda: connection.network.create_port(**wanted))
    except sdk_exceptions.HttpException as error:
        raise exception.ResourceNotUsable(kind='port', name=name,
                                          reason=error.details or str(error))


def versions(connection, link):
    """Return the IP versions of the addresses that a new port will have.

    :param link: links.Link: network and wanted addresses
    """
    if not link.network_id:
        return {ipaddress.ip_network(link.internal.cidr).version}
    found = {6 if ':' in fixed['ip_address'] else 4
             for fixed in link.fixed_ips if 'ip_address' in fixed}
    asked = {fixed.get('subnet_id') for fixed in link.fixed_ips}
    return found | {
        subnet.ip_version for subnet
        in connection.network.subnets(network_id=link.network_id)
        if not link.fixed_ips or subnet.id in asked
        or subnet.ipv6_address_mode in _AUTOMATIC}


def declare(connection, port, vdu, cp):
    """Declare what a port's guest does; may be called twice.

    :raises: ResourceNotUsable if the project may not have the role
    """
    _tag(connection, port, vdu.configuration)
    role = vdu.point(cp).role
    if role is None:
        return
    try:
        clickos_api.Client(connection).set_port_roles(port.id, [role])
    except exception.HandlerRefused as error:
        raise exception.ResourceNotUsable(
            kind='port', name=port.name,
            reason='cannot have the role %s: %s' % (role, error))


def _tag(connection, port, configuration):
    """Say at a port how chains treat its guest; a new port does already."""
    wanted = _tags(configuration)
    if not wanted:
        return
    found = port.tags or []
    others = [each for each in found if not hop_tags.is_ours(each)]
    if set(found) != {*others, *wanted}:
        connection.network.set_tags(port, others + wanted)


def _tags(configuration):
    """Return how chains treat a guest, as tags of its ports.

    An end point forwards nothing, and its ports have no such tags.
    """
    passes = configuration.transparent or configuration.whole_frames
    if not (passes or configuration.routed or configuration.copies > 1):
        return []
    return hop_tags.make(passes, configuration.copies)


def _forwarded(connection, network_id, vdu, cp):
    """Return the networks of the sources that a VDU forwards."""
    return (_everywhere(connection, network_id, vdu.point(cp))
            if vdu.configuration.routed else [])


def _everywhere(connection, network_id, point):
    """Return the networks that have all addresses of hosts.

    Those of IPv6 only for a connection point that has it, on a network that
    has it.
    """
    if 6 not in point.versions:
        return _EVERYWHERE[4]
    subnets = connection.network.subnets(network_id=network_id)
    found = {subnet.ip_version for subnet in subnets}
    return [network for version in (4, 6) if version in found
            for network in _EVERYWHERE[version]]


def _open_group(connection, record):
    """Return the id of the project's security group for VNFs.

    A VNF judges packets itself, so the group admits all. The project may
    give a port other groups later.
    """
    found = own.security_group(connection, record.group, GROUP)
    record.group = found.id if found else _make_group(connection)
    return record.group


def _make_group(connection):
    group = outages.once(
        lambda: own.security_group(connection, None, GROUP),
        lambda: connection.network.create_security_group(
            name=GROUP, description='ClickOS VNFs: all packets'))
    for ethertype in ('IPv4', 'IPv6'):
        _admit(connection, group.id, ethertype)
    return group.id


def _admit(connection, group_id, ethertype):
    """Let a group admit all packets; Neutron refuses a rule that it has."""
    with contextlib.suppress(sdk_exceptions.ConflictException):
        outages.once(
            lambda: None,
            lambda: connection.network.create_security_group_rule(
                security_group_id=group_id, direction='ingress',
                ethertype=ethertype))


def release(connection, port):
    """Take a port from a server that does not exist any more.

    Nova leaves the port to it if Neutron was away when the server ended, and
    gives it to no other one.
    """
    if not port.device_id or not (port.device_owner or '').startswith(
            _COMPUTE):
        return
    try:
        connection.compute.get_server(port.device_id)
    except sdk_exceptions.NotFoundException:
        connection.network.update_port(port.id, device_id='', device_owner='')


def delete(connection, ports):
    """Delete ports; those already gone are fine.

    Neutron lets no member delete the port of a server, so one that its
    server left behind is taken from it first.
    """
    for port in ports:
        release(connection, port)
        connection.network.delete_port(port.id, ignore_missing=True)


def interface(connection, cp, port, point):
    """Return the prelude.Interface of a port.

    The first address of each IP version names network and gateway.

    :param point: model.Point of the connection point
    """
    network = connection.network.get_network(port.network_id)
    found = {4: [], 6: []}
    for fixed_ip in port.fixed_ips or []:
        address = ipaddress.ip_address(fixed_ip['ip_address'])
        found[address.version].append((str(address), fixed_ip['subnet_id']))
    ip, net, gateway = _first(connection, found[4])
    ip6, net6, gateway6 = _first(connection, found[6])
    if ip is None and ip6 is None:
        raise exception.ResourceNotUsable(
            kind='port', name=port.name,
            reason='has no IP address; give its network a subnet')
    return prelude.Interface(
        cp=cp, mac=port.mac_address, mtu=network.mtu or 1500,
        ip=ip, net=net, gateway=gateway,
        ip6=ip6, net6=net6, gateway6=gateway6,
        ips=tuple(address for address, _subnet in found[4]),
        ip6s=tuple(address for address, _subnet in found[6]),
        is_dual=point.is_dual)


def _first(connection, addresses):
    """Return the first address, its network and gateway."""
    if not addresses:
        return None, None, None
    address, subnet_id = addresses[0]
    subnet = connection.network.get_subnet(subnet_id)
    return address, subnet.cidr, subnet.gateway_ip

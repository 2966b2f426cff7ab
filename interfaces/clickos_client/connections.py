# SPDX-License-Identifier: Apache-2.0
"""The connection points of VNFs, from their Neutron ports, and to them.

The driver names a port after its guest and connection point, such as
VDU1-0-left, and marks it with the VNF. The functions take the ports of
openstacksdk or of Horizon.
"""

import dataclasses
import ipaddress

from clickos_client import chains


@dataclasses.dataclass(frozen=True)
class Connection:
    """A port of a guest.

    :ivar guest: its short name, such as VDU1-0
    :ivar point: the connection point of the descriptor
    :ivar network: the network's name
    """

    port_id: str
    guest: str
    point: str
    network: str
    addresses: tuple
    mac: str
    state: str

    @property
    def shown_addresses(self):
        """The addresses as text; a dash for none."""
        return ', '.join(self.addresses) or '–'


def of_vnf(vnf_id, guests, ports, networks):
    """Return the Connections of a VNF, in the order of its guests.

    :param guests: the short names of its guests
    :param ports: Neutron's, also of others
    :param networks: {id: name}; a network that lacks has its id
    """
    mark = chains.VNF_MARK + vnf_id
    order = {name: place for place, name in enumerate(guests)}
    found = [_connection(port, guests, networks) for port in ports
             if port.description == mark]
    return tuple(sorted(found, key=lambda each: (
        order.get(each.guest, len(order)), each.point)))


def by_point(connections):
    """Return {connection point: [NETWORK=ADDRESS]}."""
    found = {}
    for each in connections:
        found.setdefault(each.point, []).extend(
            f'{each.network}={address}' for address in each.addresses)
    return found


def link(point, network_id, addresses=()):
    """Return SOL003's extVirtualLink of a connection point.

    :param addresses: fixed ones, as text, of either family
    """
    config = {'layerProtocol': 'IP_OVER_ETHERNET'}
    if addresses:
        config['ipOverEthernet'] = {'ipAddresses': [
            {'type': f'IPV{ipaddress.ip_address(each).version}',
             'fixedAddresses': [each]} for each in addresses]}
    return {'id': point, 'resourceId': network_id, 'extCps': [
        {'cpdId': point, 'cpConfig': [{'cpProtocolData': [config]}]}]}


def _connection(port, guests, networks):
    name = port.name or port.id
    guest = max((each for each in guests if name.startswith(f'{each}-')),
                key=len, default='')
    return Connection(
        port.id, guest, name.removeprefix(f'{guest}-') if guest else name,
        networks.get(port.network_id) or port.network_id,
        tuple(each['ip_address'] for each in port.fixed_ips or ()),
        port.mac_address or '', port.status or '')

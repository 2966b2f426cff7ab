# SPDX-License-Identifier: Apache-2.0
"""How the VNFs, networks and chains of a project hang together."""

import dataclasses

from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from clickos_dashboard.api import ports as known_ports
from clickos_dashboard.vnfs import tables

#: Connection points of a VNF that are shown.
MOST_POINTS = 16
_STATUS = dict(tables.STATUS)


@dataclasses.dataclass(frozen=True)
class Network:
    """A network to which a shown port belongs."""

    id: str
    name: str


@dataclasses.dataclass(frozen=True)
class Point:
    """A connection point: the ports of this name of all guests of a VNF."""

    name: str
    network: Network
    ports: tuple

    @property
    def addresses(self):
        """Return the addresses of its ports."""
        return [each['ip_address'] for port in self.ports
                for each in port.get('fixed_ips') or ()]

    @property
    def counted(self):
        """Return what a script asks for: server and MAC of each port."""
        return known_ports.counted(self.ports)


@dataclasses.dataclass(frozen=True)
class Place:
    """A hop of a chain that a VNF is; the first one has number 1."""

    chain: object
    number: int


@dataclasses.dataclass(frozen=True)
class Node:
    """A VNF, or a guest without one that is a hop.

    :ivar status: as of vnf.Vnf; nothing for a guest without a VNF
    :ivar omitted: number of connection points beyond those of points
    """

    id: str
    name: str
    status: str
    points: tuple
    places: tuple
    omitted: int = 0

    @property
    def is_vnf(self):
        """Return whether it is a VNF."""
        return bool(self.status)

    @property
    def address(self):
        """Return the address of its page."""
        kind = 'vnfs' if self.is_vnf else 'guests'
        return reverse(f'horizon:clickos:{kind}:detail', args=(self.id,))

    @property
    def shown_status(self):
        """Return its status for people."""
        return _STATUS[self.status] if self.is_vnf \
            else _('Guest without a VNF')

    @property
    def networks(self):
        """Return the networks of its points."""
        return {point.network for point in self.points}


def nodes(vnfs, ports, networks, chains):
    """Return the Nodes, those of a chain in the order of its hops.

    :param vnfs: list of vnf.Vnf
    :param ports: Neutron's ports of the project
    :param networks: {id: name}
    :param chains: list of api.chains.Chain whose hops have ports
    """
    named = {vnf.id: (vnf.name, vnf.status) for vnf in vnfs}
    owners = {port['id']: _owner(port, named) for port in ports}
    hops = _hops(chains, owners)
    of_owner = {}
    for port in ports:
        of_owner.setdefault(owners[port['id']], []).append(port)
    for owner, (_places, name) in hops.items():
        named.setdefault(owner, (name, ''))
    found = [_node(owner, *named[owner], of_owner.get(owner, ()), networks,
                   tuple(hops.get(owner, ((), ''))[0])) for owner in named]
    first = {chain.id: at for at, chain in enumerate(chains)}
    return sorted(found, key=lambda node: _order(node, first))


def _owner(port, vnfs):
    """Return the id of a port's VNF, or else of its server."""
    found = known_ports.vnf_of(port)
    return found if found in vnfs else known_ports.server_of(port)


def _hops(chains, owners):
    """Return {owner: ([Place], name of a hop)} of all hops."""
    found = {}
    for chain in chains:
        for number, hop in enumerate(chain.hops, 1):
            for owner in {owners.get(port) for port in hop.ports}:
                if owner:
                    places, _name = found.setdefault(owner, ([], hop.name))
                    places.append(Place(chain, number))
    return found


def _order(node, first):
    """Put the hops of a chain one after the other, before all others."""
    place = node.places[0] if node.places else None
    at = (first[place.chain.id], place.number) if place \
        else (len(first), 0)
    return (*at, node.name, node.id)


def _node(owner, name, status, ports, networks, places):
    points = {}
    for port in ports:
        key = (known_ports.point_of(port), port['network_id'])
        points.setdefault(key, []).append(port)
    shown = [Point(point, Network(network, networks.get(network, network)),
                   tuple(found))
             for (point, network), found in sorted(points.items())]
    return Node(owner, name, status, tuple(shown[:MOST_POINTS]), places,
                max(0, len(shown) - MOST_POINTS))

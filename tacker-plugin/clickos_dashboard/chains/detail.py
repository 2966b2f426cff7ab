# SPDX-License-Identifier: Apache-2.0
"""What the page of a chain shows of its hops."""

import dataclasses

from django.urls import reverse

from clickos_dashboard.api import ports as known_ports

#: Ids that one request to Neutron names; more would make its line too long.
_MOST_IDS = 40


@dataclasses.dataclass(frozen=True)
class Hop:
    """A hop: its place from 1 on, its name, and whose ports it has.

    :ivar address: of the page of its VNF or guest, or nothing
    :ivar counted: 'server/MAC' of its ports, for a script
    :ivar vnf_id: of its VNF, or nothing
    """

    number: int
    name: str
    address: str
    counted: str
    vnf_id: str = ''


@dataclasses.dataclass(frozen=True)
class Detail:
    """The hops, and the network whose packets the chain steers.

    :ivar network_id: nothing if no port is known
    """

    hops: list
    network_id: str = ''


def read(request, chain):
    """Return the Detail of a chain.

    :param chain: api.chains.Chain whose hops have ports
    """
    wanted = {port for hop in chain.hops for port in hop.ports}
    query = {'id': sorted(wanted)} if len(wanted) <= _MOST_IDS else {}
    found = {port['id']: port for port in
             known_ports.of_project(request, **query)} if wanted else {}
    first = next((found[key]['network_id'] for key in chain.hops[0].ports
                  if key in found), '') if chain.hops else ''
    return Detail([_hop(number, hop, [found[key] for key in hop.ports
                                      if key in found])
                   for number, hop in enumerate(chain.hops, 1)], first)


def unknown(chain):
    """Return the Detail of a chain whose ports are not known."""
    return Detail([_hop(number, hop, ())
                   for number, hop in enumerate(chain.hops, 1)])


def _hop(number, hop, ports):
    vnf_id = _vnf(ports)
    return Hop(number, hop.name, _address(vnf_id, ports),
               known_ports.counted(ports), vnf_id)


def _vnf(ports):
    """Return the id of the VNF that all ports have, or nothing."""
    vnfs = {known_ports.vnf_of(port) for port in ports}
    return vnfs.pop() if len(vnfs) == 1 else ''


def _address(vnf_id, ports):
    if vnf_id:
        return reverse('horizon:clickos:vnfs:detail', args=(vnf_id,))
    guests = tuple(filter(None, dict.fromkeys(
        map(known_ports.server_of, ports))))
    return reverse('horizon:clickos:guests:detail', args=guests) \
        if len(guests) == 1 else ''

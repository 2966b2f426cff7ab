# SPDX-License-Identifier: Apache-2.0
"""Fuses a running chain into one guest, and unfuses it (docs/adr/0081).

Each step has its undoing, so a failure leaves the chain as it was.
"""

import contextlib
import dataclasses
import logging
import math
import re
import time
import uuid

from clickos_client import api
from clickos_client import chains
from clickos_client import combiner
from clickos_client import document
from clickos_client import vnf

LOG = logging.getLogger(__name__)

_NAME_LENGTH = 32
#: Key of the metadata of a fused server that names its state.
_STATE_KEY = 'clickos_state'
#: How long the switch may take for a new definition, and a server to start.
_SWITCH_S, _START_S = 30, 300
_LOOK_S = 0.1


@dataclasses.dataclass(frozen=True)
class Cloud:
    """Proxies of services, with the caller's token.

    :param network: openstacksdk's proxy of Neutron
    :param compute: openstacksdk's proxy of Nova
    :param image: openstacksdk's proxy of Glance
    :param clickos: api.Client
    """

    network: object
    compute: object
    image: object
    clickos: api.Client


@dataclasses.dataclass(frozen=True)
class _Hop:
    """A hop with its guest: the server, and the places of its two ports."""

    name: str
    group: object
    server: object
    network_id: str
    ingress: int
    egress: int


def fuse(cloud, chain, flavor=None, program=combiner.PROGRAM):
    """Let one new guest do the work of all hops of a chain.

    :param flavor: id of the guest's, by default the hops' largest
    :param program: click-combine
    :returns: the new server
    """
    found = _hops(cloud, chain)
    config = combiner.fuse(program, [
        combiner.Hop(hop.name, cloud.clickos.read(hop.server.id, 'config'),
                     hop.ingress, hop.egress) for hop in found])
    with contextlib.ExitStack() as undo:
        server, ports = _boot(cloud, chain, found, config, flavor, undo)
        undo.callback(cloud.clickos.unfuse, chain.id)
        cloud.clickos.fuse(chain.id, server.id, [
            {'name': hop.name, 'server': hop.server.id,
             'group': hop.group.id} for hop in found])
        names = ', '.join(hop.name for hop in found)
        group = chains.make_hop(
            cloud.network, f'{names}: fused in {server.name}',
            [chains.Guest(name=server.name, ports=ports)], undo, _mark(chain))
        transfers = [(hop.server.id, [server.id]) for hop in found]
        _move(cloud, chain, [group], transfers, undo)
        undo.pop_all()
    return server


def unfuse(cloud, chain, drops_flows=False):
    """Let the guests of the hops do their work again.

    After a failure it can be done again.

    :param drops_flows: the fused guest may be gone; its connections end
    """
    fusion = cloud.clickos.fusion(chain.id)
    if fusion is None:
        raise chains.ChainError(f'chain {chain.name}: is not fused')
    groups = [hop['group'] for hop in fusion['hops']]
    if chain.port_pair_groups != groups:
        transfers = [] if drops_flows else [
            (fusion['server'], _servers(cloud, group)) for group in groups]
        with contextlib.ExitStack() as undo:
            _move(cloud, chain, groups, transfers, undo)
            undo.pop_all()
    cloud.clickos.unfuse(chain.id)
    _remove(cloud, chain, fusion['server'])


def _hops(cloud, chain):
    """Return the _Hops of a chain that can be fused."""
    found = chains.hops(cloud.network, chain)
    if len(found) < 2:
        raise chains.ChainError(f'chain {chain.name}: has one hop, so there'
                                ' is nothing to fuse')
    for other in cloud.network.sfc_port_chains():
        shared = set(other.port_pair_groups) & set(chain.port_pair_groups)
        if other.id != chain.id and shared:
            raise chains.ChainError(
                f'chain {chain.name}: chain {other.name or other.id} has one'
                ' of its hops too')
    names = []
    return [_hop(cloud, hop, names) for hop in found]


def _hop(cloud, hop, names):
    """Return a _Hop; add its name to those of the hops before."""
    def wrong(reason):
        return chains.ChainError(f'hop {hop.name}: {reason}')

    if len(hop.pairs) != 1:
        raise wrong(f'has {len(hop.pairs)} guests; a fused one has one')
    ends = [cloud.network.get_port(key)
            for key in (hop.pairs[0].ingress, hop.pairs[0].egress)]
    if ends[0].id == ends[1].id:
        raise wrong('has one port for both directions')
    if chains.translation(hop.group):
        raise wrong('translates addresses; such a hop cannot be fused')
    if any(port.is_port_security_enabled for port in ends):
        raise wrong('has addresses of its own; only transparent hops, whose'
                    ' ports have no port security, can be fused')
    server = cloud.compute.get_server(ends[0].device_id)
    ports = chains.guest(
        hop.name, chains.server_ports(cloud.network, server.id),
        server.addresses).ports
    if not server.image or not server.image.id:
        raise wrong('its guest has no image that a fused one could have')
    if len(ports) != 2:
        raise wrong(f'its guest has {len(ports)} ports; a fused one has two')
    name = _name(hop.name, names)
    names.append(name)
    return _Hop(name, hop.group, server, ends[0].network_id,
                *(ports.index(port.id) for port in ends))


def _name(text, taken):
    """Return the prefix of a hop's elements: a word that no other hop has."""
    word = re.sub(r'\W', '_', text, flags=re.ASCII)
    word = ('_' + word if word[:1].isdigit() else word or 'hop')[
        :_NAME_LENGTH - 3]
    name, number = word, 1
    while name in taken:
        number += 1
        name = f'{word}_{number}'
    return name


def _boot(cloud, chain, found, config, flavor, undo):
    """Start the fused guest; return its server and the ids of its ports."""
    state_id = cloud.clickos.create_state(
        document.Configuration(config, 'fused.click'))
    undo.callback(cloud.clickos.delete_state, state_id)
    name = f'{chain.name or chain.id}-fused'
    ports = []
    for side in ('in', 'out'):
        port = cloud.network.create_port(
            network_id=found[0].network_id, name=f'{name}-{side}',
            description=_mark(chain), is_port_security_enabled=False)
        undo.callback(cloud.network.delete_port, port.id)
        ports.append(port.id)
    server = cloud.compute.create_server(
        name=name, image_id=_image(cloud, found),
        flavor_id=flavor or _flavor(cloud, found),
        networks=[{'port': port} for port in ports],
        user_data=document.referring(state_id),
        metadata={_STATE_KEY: state_id})
    undo.callback(_delete_server, cloud, server.id)
    return (cloud.compute.wait_for_server(server, wait=_START_S),
            tuple(ports))


def _mark(chain):
    """Return the description of what a fused chain has more."""
    return chains.FUSED_MARK + chain.id


def _state_id(chain, server):
    """Return the id of the fused guest's state.

    Chains fused by release 0.2.0 and before have an id made of theirs.
    """
    return (server and (server.metadata or {}).get(_STATE_KEY)
            or str(uuid.uuid5(uuid.UUID(chain.id), 'fused')))


def _image(cloud, found):
    """Return the id of the hops' image with most groups of elements.

    An image without the property has all.
    """
    ids = list(dict.fromkeys(hop.server.image.id for hop in found))
    if len(ids) == 1:
        return ids[0]

    def size(key):
        groups = (cloud.image.get_image(key).properties or {}).get(
            vnf.IMAGE_GROUPS)
        return math.inf if groups is None else len(groups.split(','))
    return max(ids, key=size)


def _flavor(cloud, found):
    """Return the id of the flavor with most memory of the hops' guests."""
    largest = max((hop.server.flavor for hop in found),
                  key=lambda flavor: flavor.ram or 0)
    # Newer versions of Nova's API name the flavor, without its id.
    return cloud.compute.find_flavor(largest.original_name or largest.id,
                                     ignore_missing=False).id


def _move(cloud, chain, groups, transfers, undo):
    """Give a live chain other groups, with the flows of their guests.

    The first pass transfers all flows, the second one what packets changed
    meanwhile.

    :param transfers: list of (server id, ids of servers that get its flows)
    """
    for source, targets in transfers:
        undo.callback(_give_back, cloud, source, targets)
        cloud.clickos.transfer_flows(source, targets)
    undo.callback(_steer, cloud, chain, list(chain.port_pair_groups))
    _steer(cloud, chain, groups)
    for source, targets in transfers:
        cloud.clickos.transfer_flows(source, targets)


def _give_back(cloud, source, targets):
    """Let a source open flows again, with those that began elsewhere."""
    for target in targets:
        try:
            cloud.clickos.transfer_flows(target, [source])
        except api.ClickOSError as exc:
            LOG.warning('Server %s: its flows do not go back: %s', target,
                        exc)


def _steer(cloud, chain, groups):
    """Give a chain other groups, and wait until the switch has them."""
    cloud.network.update_sfc_port_chain(chain.id, port_pair_groups=groups)
    end_s = time.monotonic() + _SWITCH_S
    while len(cloud.clickos.chain(chain.id)['hops']) != len(groups):
        if time.monotonic() > end_s:
            raise chains.ChainError(
                f'chain {chain.name}: the switch does not have its new hops'
                f' after {_SWITCH_S} s')
        time.sleep(_LOOK_S)


def _servers(cloud, group):
    """Return the ids of the servers of a hop."""
    pairs = cloud.network.get_sfc_port_pair_group(group).port_pairs
    ports = [cloud.network.get_sfc_port_pair(key).ingress for key in pairs]
    return [cloud.network.get_port(port).device_id for port in ports]


def _remove(cloud, chain, server_id):
    """Delete the fused guest with its hop, state and ports."""
    network, mark = cloud.network, _mark(chain)
    state_id = _state_id(chain, cloud.compute.find_server(
        server_id, ignore_missing=True))
    chains.sweep(network, [group.id for group in network.sfc_port_pair_groups()
                           if group.description == mark])
    _delete_server(cloud, server_id)
    for port in chains.ports(network, mark):
        network.delete_port(port.id)
    cloud.clickos.delete_state(state_id)


def _delete_server(cloud, server_id):
    """Delete a server and wait for its end; it may be gone."""
    server = cloud.compute.find_server(server_id, ignore_missing=True)
    if server:
        cloud.compute.delete_server(server.id)
        cloud.compute.wait_for_delete(server, wait=_START_S)

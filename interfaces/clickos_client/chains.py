# SPDX-License-Identifier: Apache-2.0
"""Chains of guests, on networking-sfc's API.

A hop is a port pair group with a port pair for each guest. The functions take
openstacksdk's proxy of Neutron.
"""

import contextlib
import dataclasses

#: The description of everything that these functions make, and may delete.
MARK = 'clickos chain'
#: That of a fused chain's hop and its ports, before the chain's id.
FUSED_MARK = f'{MARK}, fused: '
#: clickos-api and Tacker's driver mark the ports of a VNF with it.
VNF_MARK = 'clickos-vnf:'


_CLASSIFIER = ('ethertype', 'protocol', 'source_ip_prefix',
               'destination_ip_prefix', 'logical_source_port',
               'logical_destination_port')


class ChainError(ValueError):
    """A chain or hop that does not exist, or that cannot be as wanted."""


@dataclasses.dataclass(frozen=True)
class Guest:
    """A server as a hop.

    :param ports: ids of its ports, in the order of its interfaces
    :param ingress: name or id of the port that gets packets
    :param egress: name or id of the port that sends them on
    :param nat: network of the addresses that it puts in place of sources;
        all guests of a hop share it
    """

    name: str
    ports: tuple
    ingress: str | None = None
    egress: str | None = None
    weight: int = 1
    nat: str | None = None


@dataclasses.dataclass(frozen=True)
class Hop:
    """A hop of a chain: its name, and the group with its port pairs."""

    name: str
    group: object
    pairs: list


def guest(name, ports, addresses, **options):
    """Return a server as a hop, its ports in the order of its interfaces.

    :param ports: Neutron's ports of the server, or some of them
    :param addresses: Nova's addresses of the server
    :param options: ingress, egress, weight and nat of Guest
    """
    macs = [address.get('OS-EXT-IPS-MAC:mac_addr')
            for each in (addresses or {}).values() for address in each]

    def place(port):
        mac = port.mac_address
        return macs.index(mac) if mac in macs else len(macs)

    return Guest(name=name, **options, ports=tuple(
        port.id for port in sorted(ports, key=place)))


def ports(network, mark, **query):
    """Return the ports of the caller's project with a description.

    On a network of the project others have ports, with any description.

    :param network: openstacksdk's proxy of Neutron
    """
    project_id = network.get_project_id()
    return [port for port in network.ports(
        description=mark, project_id=project_id, **query)
        if (port.description, port.project_id) == (mark, project_id)]


def server_ports(network, server_id):
    """Return the ports of a server of the caller's project.

    A port of another project may name any server as its device.
    """
    project_id = network.get_project_id()
    return [port for port in network.ports(
        device_id=server_id, project_id=project_id)
        if port.project_id == project_id]


def find(network, name):
    """Return the port chain of this id, or the project's of this name.

    An administrator's list has chains of all projects.
    """
    found = [chain for chain in network.sfc_port_chains()
             if name == chain.id or name == chain.name
             and chain.project_id == network.get_project_id()]
    return _only(found, 'chain', name)


def find_network(network, name):
    """Return the network of this id, or of this name.

    Another project can share a network of any name. So the project's own
    network of a name comes first.
    """
    named = [each for each in network.networks(name=name)
             if each.name == name]
    return _only(list(network.networks(id=name))
                 or [each for each in named
                     if each.project_id == network.get_project_id()]
                 or named, 'network', name)


def hops(network, chain):
    """List the Hops of a chain in order."""
    groups = {group.id: group for group in network.sfc_port_pair_groups()}
    pairs = {pair.id: pair for pair in network.sfc_port_pairs()}
    found = []
    for key in chain.port_pair_groups:
        group = groups[key]
        found.append(Hop(group.name or group.id, group,
                         [pairs[pair] for pair in group.port_pairs]))
    return found


def described(network, chain):
    """Say which packets a chain steers.

    :returns: dict: 'network', its name; 'direction'; 'classifiers', a text
        for each, in the words of the option --classifier
    """
    pairs = [pair for hop in hops(network, chain) for pair in hop.pairs]
    of_port = pairs and network.get_port(pairs[0].ingress).network_id
    symmetric = (chain.chain_parameters or {}).get('symmetric')
    return {
        'network': network.get_network(of_port).name if pairs else '',
        'direction': ('both ways: answers take the hops in the opposite order'
                      if symmetric else 'one way: answers go straight'),
        'classifiers': [classifier(network.get_sfc_flow_classifier(key))
                        for key in chain.flow_classifiers]}


def classifier(flow):
    """Return a flow classifier as --classifier takes it."""
    words = [(key.replace('_', '-'), getattr(flow, key, None))
             for key in _CLASSIFIER]
    for side in ('source', 'destination'):
        first, last = (getattr(flow, f'{side}_port_range_{end}', None)
                       for end in ('min', 'max'))
        words.append((f'{side}-port', first if last in (None, first)
                      else f'{first}:{last}'))
    return ','.join(f'{key}={value}' for key, value in words
                    if value is not None) or 'all packets'


def find_hop(found, name):
    """Return the place of a hop in a list of Hops, by name or id."""
    places = [place for place, hop in enumerate(found)
              if name in (hop.name, hop.group.id)]
    return _only(places, 'hop', name)


def create(network, name, wanted, classifiers, symmetric=True):
    """Make a chain and all its parts, or nothing.

    :param wanted: list of (name, list of Guest), the hops in order
    :param classifiers: list of a flow classifier's values
    """
    project_id = network.get_project_id()
    if any((chain.name, chain.project_id) == (name, project_id)
           for chain in network.sfc_port_chains()):
        raise ChainError(f'chain {name}: exists already')
    with contextlib.ExitStack() as undo:
        groups = [make_hop(network, hop, guests, undo)
                  for hop, guests in wanted]
        flows = _make_flows(network, name, classifiers, undo)
        chain = network.create_sfc_port_chain(
            name=name, description=MARK, port_pair_groups=groups,
            flow_classifiers=flows,
            chain_parameters={'symmetric': symmetric})
        undo.pop_all()
    return chain


def change(network, chain, name=None, classifiers=(), instead=None):
    """Give a chain another name, or other classifiers instead of its own.

    :param classifiers: list of a flow classifier's values; none to keep them
    :param instead: the ids of its classifiers that go, by default all
    """
    _require_unfused(network, chain)
    values, own = {'name': name} if name else {}, chain.flow_classifiers or ()
    gone = own if instead is None else instead
    for key in gone:
        if key not in own:
            raise ChainError(f'chain {chain.name}: has other classifiers by'
                             ' now')
    with contextlib.ExitStack() as undo:
        if classifiers:
            values['flow_classifiers'] = [
                *(key for key in own if key not in gone), *_make_flows(
                    network, name or chain.name, classifiers, undo)]
        network.update_sfc_port_chain(chain.id, **values)
        undo.pop_all()
    if classifiers:
        _drop_flows(network, gone)


def _make_flows(network, name, classifiers, undo):
    """Return the ids of new flow classifiers."""
    found = []
    for number, values in enumerate(classifiers, 1):
        flow = network.create_sfc_flow_classifier(
            name=f'{name}-{number}', description=MARK, **values)
        undo.callback(network.delete_sfc_flow_classifier, flow)
        found.append(flow.id)
    return found


def _drop_flows(network, ids):
    """Delete flow classifiers that these functions made."""
    for key in ids:
        if network.get_sfc_flow_classifier(key).description == MARK:
            network.delete_sfc_flow_classifier(key, ignore_missing=True)


def make_hop(network, name, guests, undo, mark=MARK):
    """Return the id of a hop's group; make what does not exist yet.

    Two chains share the group of a hop, since networking-sfc has one pair for
    two ports, and one group for a pair.
    :param undo: ExitStack that gets the calls that remove what was made
    :param mark: the description of a new group
    """
    wanted = {_ends(network, guest): guest for guest in guests}
    known = {(pair.ingress, pair.egress): pair.id
             for pair in network.sfc_port_pairs()}
    pairs = sorted(known[ends] for ends in wanted if ends in known)
    for group in network.sfc_port_pair_groups():
        if pairs and sorted(group.port_pairs) == pairs \
                and len(pairs) == len(wanted):
            return group.id
    for ends, guest in wanted.items():
        if ends not in known:
            pairs.append(_make_pair(network, guest, ends, undo))
    group = network.create_sfc_port_pair_group(
        name=name, description=mark, port_pairs=pairs,
        **_translation(name, guests))
    undo.callback(network.delete_sfc_port_pair_group, group)
    return group.id


def _translation(name, guests):
    """Return the parameters of a group whose guests translate sources."""
    found = sorted({guest.nat for guest in guests if guest.nat})
    if not found:
        return {}
    if len(found) > 1:
        raise ChainError(f'hop {name}: its guests share one nat, not'
                         f' {" and ".join(found)}')
    return {'port_pair_group_parameters': {'ppg_n_tuple_mapping': {
        'ingress_n_tuple': {},
        'egress_n_tuple': {'source_ip_prefix': found[0]}}}}


def translation(group):
    """Return the network to which a hop translates sources, or None."""
    parameters = group.port_pair_group_parameters or {}
    mapping = parameters.get('ppg_n_tuple_mapping') or {}
    return (mapping.get('egress_n_tuple') or {}).get('source_ip_prefix')


def _make_pair(network, guest, ends, undo):
    pair = network.create_sfc_port_pair(
        name=guest.name, description=MARK, ingress=ends[0], egress=ends[1],
        service_function_parameters={'correlation': None,
                                     'weight': guest.weight})
    undo.callback(network.delete_sfc_port_pair, pair)
    return pair.id


def _ends(network, guest):
    """Return the ids of a guest's ingress and egress port."""
    ports = [network.get_port(key) for key in guest.ports]
    if not ports:
        raise ChainError(f'hop {guest.name}: has no port')
    ends = []
    for place, wanted in ((0, guest.ingress), (1, guest.egress)):
        if wanted is None:
            ends.append(ports[min(place, len(ports) - 1)].id)
        else:
            ends.append(_named_port(ports, guest, wanted))
    return tuple(ends)


def _named_port(ports, guest, wanted):
    """Return the port with this name or id, or of this connection point."""
    found = [port.id for port in ports
             if wanted in (port.id, port.name)
             or port.name.endswith(f'-{wanted}')]
    return _only(found, f'port of hop {guest.name}', wanted)


def join(network, siblings, name, ports):
    """Give a new guest a share of the flows that its siblings have.

    :param siblings: for each guest of its kind {connection point: port id}
    :param name: the new guest's name
    :param ports: {connection point: port id} of the new guest
    """
    points = {port: cp for each in siblings for cp, port in each.items()}
    pairs = {pair.id: pair for pair in network.sfc_port_pairs()}
    for group in network.sfc_port_pair_groups():
        found = [pairs[key] for key in group.port_pairs if key in pairs]
        ends = {(points.get(pair.ingress), points.get(pair.egress))
                for pair in found}
        known = {(pair.ingress, pair.egress) for pair in found}
        added = [(ports[first], ports[last]) for first, last in ends
                 if first in ports and last in ports]
        for ingress, egress in set(added) - known:
            _add_pair(network, group, name, ingress, egress)


def _add_pair(network, group, name, ingress, egress):
    with contextlib.ExitStack() as undo:
        guest = Guest(name=name, ports=(ingress, egress))
        pair = _make_pair(network, guest, (ingress, egress), undo)
        network.update_sfc_port_pair_group(
            group.id, port_pairs=[*group.port_pairs, pair])
        undo.pop_all()


def leave(network, ports):
    """Take guests out of all hops, so that no flow reaches them.

    :param ports: ids of the guests' ports
    """
    gone = [pair.id for pair in network.sfc_port_pairs()
            if pair.ingress in ports or pair.egress in ports]
    if not gone:
        return
    for group in network.sfc_port_pair_groups():
        stay = [key for key in group.port_pairs if key not in gone]
        if len(stay) < len(group.port_pairs):
            network.update_sfc_port_pair_group(group.id, port_pairs=stay)
    for key in gone:
        network.delete_sfc_port_pair(key, ignore_missing=True)


def _require_unfused(network, chain):
    """Refuse to change a chain whose hops are in one guest."""
    if any(is_fused(group) for group in network.sfc_port_pair_groups()
           if group.id in chain.port_pair_groups):
        raise ChainError(f'chain {chain.name}: is fused; unfuse it first'
                         ' (openstack clickos chain unfuse)')


def replace(network, chain, groups):
    """Give a live chain other groups by one request; drop unused ones."""
    _require_unfused(network, chain)
    if not groups:
        raise ChainError(f'chain {chain.name}: the last hop stays; delete'
                         ' the chain')
    if len(set(groups)) < len(groups):
        raise ChainError(f'chain {chain.name}: a hop comes twice')
    before = set(chain.port_pair_groups)
    network.update_sfc_port_chain(chain.id, port_pair_groups=groups)
    sweep(network, before - set(groups))


def delete(network, chain):
    """Delete a chain, and its parts that these functions made."""
    _require_unfused(network, chain)
    groups, flows = chain.port_pair_groups, chain.flow_classifiers
    network.delete_sfc_port_chain(chain.id, ignore_missing=True)
    _drop_flows(network, flows)
    sweep(network, groups)


def sweep(network, groups):
    """Delete groups of ours that no chain has, with their pairs."""
    used = {key for chain in network.sfc_port_chains()
            for key in chain.port_pair_groups}
    for key in set(groups) - used:
        group = network.get_sfc_port_pair_group(key)
        if group.description != MARK and not is_fused(group):
            continue
        network.delete_sfc_port_pair_group(key, ignore_missing=True)
        for pair in group.port_pairs:
            if network.get_sfc_port_pair(pair).description == MARK:
                network.delete_sfc_port_pair(pair, ignore_missing=True)


def is_fused(group):
    """True for the hop that stands for those of a fused chain."""
    return (group.description or '').startswith(FUSED_MARK)


def _only(found, kind, name):
    """Return the one thing found."""
    if len(found) != 1:
        raise ChainError(f'{kind} {name}: '
                         + ('several have this name; use an id'
                            if found else 'does not exist'))
    return found[0]

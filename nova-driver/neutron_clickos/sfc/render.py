# SPDX-License-Identifier: Apache-2.0
"""A port chain of networking-sfc as valed's chain.

The functions take the dictionaries of networking-sfc's API and return the
arguments of chain-set (docs/interfaces.md, "valed").
"""

import collections

from clickos_client import limits
from neutron_lib import constants

from neutron_clickos.sfc import claims

#: Largest weight of a port pair, and most of other lists: valed's limits.
MAX_WEIGHT = 16
MAX_PAIRS = 16
MAX_CLASSIFIERS = 16

_PORTS = ('tcp', 'udp', '6', '17')

#: Most hosts of a chain, valed's limit.
MAX_HOSTS = 16
#: The addresses of a port without port security.
_ALL = list(claims.ANY.values())

#: The place of a port at a switch: host, switch, segment, name at the switch,
#: whether port security is on, the MAC address and the allowed networks. Its
#: tags say whether a hop is transparent, None without a word, and how many
#: frames it may make of one.
Place = collections.namedtuple(
    'Place', 'host switch segment name secure mac allowed transparent copies',
    defaults=(None, 1))
#: A port's project, its network's project, its Place or None if it is not
#: bound, the networks in which its hop may claim addresses, those that the
#: port itself may use, and the id of its network.
Port = collections.namedtuple(
    'Port', 'project network_project place claimable usable network',
    defaults=(None,))


class Unsupported(ValueError):
    """A part of a chain that the switch does not have."""


class Foreign(ValueError):
    """A part of a chain that is not its project's."""


class NotReady(ValueError):
    """A chain of unbound ports, or without a path between its hosts."""


class Empty(ValueError):
    """A chain that selects no packet."""


def check_classifier(classifier):
    """Raise Unsupported for a flow classifier that valed cannot match."""
    if classifier.get('l7_parameters'):
        raise Unsupported('l7_parameters: the switch matches addresses,'
                          ' protocol and ports only')
    protocol = classifier.get('protocol')
    if protocol is not None:
        protocol_number(protocol)
    ranged = [side for side in ('source', 'destination')
              if classifier.get(f'{side}_port_range_min') is not None]
    if ranged and str(protocol).lower() not in _PORTS:
        raise Unsupported(f'{ranged[0]}_port_range: needs protocol tcp or'
                          ' udp')


def check_pair(pair):
    """Raise Unsupported for a port pair with an encapsulation or weight."""
    parameters = pair.get('service_function_parameters') or {}
    correlation = parameters.get('correlation')
    if correlation:
        raise Unsupported(f'correlation {correlation}: the switch sends'
                          ' packets without an encapsulation')
    weight = int(parameters.get('weight', 1))
    if not 0 <= weight <= MAX_WEIGHT:
        raise Unsupported(f'weight: {weight} is outside 0..={MAX_WEIGHT}')


def check_group(group):
    """Raise Unsupported for taps, too many pairs, or a prefix by a mask."""
    if group.get('tap_enabled'):
        raise Unsupported('tap_enabled: the switch has no taps')
    if len(group.get('port_pairs') or ()) > MAX_PAIRS:
        raise Unsupported(f'port_pairs: more than {MAX_PAIRS}')
    try:
        claims.of_group(group)
    except ValueError as e:
        raise Unsupported(f'source_ip_prefix: {e}')


def check_chain(chain):
    """Raise Unsupported for a chain beyond the switch's limits."""
    for key, most in (('port_pair_groups', limits.CHAIN_HOPS),
                      ('flow_classifiers', MAX_CLASSIFIERS)):
        found = len(chain.get(key) or ())
        if found > most:
            raise Unsupported(f'{key}: {found} are more than {most}')


def check_owner(project, ports, port_ids):
    """Raise Foreign for a port of another project, or an absent one.

    :param project: of the resource that names the ports
    :param ports: Port by id
    :param port_ids: the ports that the resource names
    """
    for key in port_ids:
        if key not in ports or ports[key].project != project:
            raise Foreign(f'port {key}: belongs to another project')


def check_scope(chain, pairs, classifiers, ports):
    """Raise Foreign for a chain that steers packets of other projects.

    Without a sending port a classifier selects packets of the whole network.
    So only the project of the network may leave the port out.
    :param pairs: the port pairs of the chain
    :param classifiers: the flow classifiers of the chain
    :param ports: Port by id
    """
    project = chain['project_id']
    for part in (*pairs, *classifiers):
        if part['project_id'] != project:
            raise Foreign(f'{part["id"]}: belongs to another project')
        check_owner(project, ports, named_ports(part))
    own = all(ports[key].network_project == project
              for pair in pairs for key in named_ports(pair))
    for classifier in classifiers:
        if not own and not classifier.get('logical_source_port'):
            raise Foreign(
                f'flow classifier {classifier["id"]}: needs'
                ' logical_source_port, because the network of the port'
                ' pairs belongs to another project')


def check_network(pairs, ports):
    """Raise Unsupported for hops on several networks.

    A chain steers the packets of one network, so no packet would reach such
    a hop.
    :param pairs: the port pairs of the chain, in the order of its hops
    :param ports: Port by id
    """
    named = [(pair, key) for pair in pairs for key in named_ports(pair)
             if ports[key].network]
    for pair, key in named:
        first = ports[named[0][1]].network
        if ports[key].network != first:
            raise Unsupported(
                f'port pair {pair["id"]}: port {key} is on network'
                f' {ports[key].network}, the first hop of the chain is on'
                f' network {first}; all hops have their ports on one network')


def check_claims(group, pairs, ports):
    """Raise Foreign for addresses that are not the hop's to translate to.

    :param group: a port pair group
    :param pairs: its port pairs
    :param ports: Port by id
    """
    found = claims.excess(group, pairs, ports)
    if found:
        network, key = found
        raise Foreign(
            f'port pair group {group["id"]}: source_ip_prefix {network}:'
            f' more than port {key} may use for its project')


def named_ports(part):
    """Return the ids of the ports of a port pair or flow classifier."""
    named = (part.get(key) for key in (
        'ingress', 'egress', 'logical_source_port',
        'logical_destination_port'))
    return [key for key in named if key]


def missing(chain, groups, pairs, classifiers, ports):
    """Return the id of a part of a chain that was not read, or None.

    The parameters are as of chain_sets.
    """
    try:
        parts = [pairs[key] for group in chain['port_pair_groups']
                 for key in groups[group]['port_pairs']]
        parts += [classifiers[key] for key in chain['flow_classifiers']]
    except KeyError as e:
        return e.args[0]
    return next((key for part in parts for key in named_ports(part)
                 if key not in ports), None)


def chain_sets(chain, groups, pairs, classifiers, ports, tunnels):
    """Return the arguments of chain-set for each host of a port chain.

    :param chain: a port chain
    :param groups: port pair groups by id
    :param pairs: port pairs by id
    :param classifiers: flow classifiers by id
    :param ports: Port by id
    :param tunnels: address of each host for VXLAN networks and chains
    :raises NotReady: a hop has no bound pair, or hosts have no path
    :raises Empty: it has no hop or classifier
    :raises Foreign: a part of the chain is not its project's
    """
    wanted = [groups[key] for key in chain['port_pair_groups']]
    flows = [classifiers[key] for key in chain['flow_classifiers']]
    check_scope(chain, [pairs[key] for group in wanted
                        for key in group['port_pairs']], flows, ports)
    if not wanted or not flows:
        raise Empty('no hop or no classifier')
    places = {key: port.place for key, port in ports.items() if port.place}
    hops = [_hop(group, pairs, places) for group in wanted]
    steered = [places[key] for group in wanted
               for pair in _live(group, pairs, places)
               for key in named_ports(pair)]
    sources = [_end(flow, 'source', places) for flow in flows]
    switch, segment = _where(steered)
    hosts = hosts_of(steered, flows, places)
    addresses = path(hosts, flows, tunnels)
    matches = [_classifier(flow, source, _end(flow, 'destination', places),
                           addresses)
               for flow, source in zip(flows, sources)]
    symmetric = (chain.get('chain_parameters') or {}).get('symmetric')
    common = {
        'switch': switch, 'chain': chain['id'], 'segment': segment,
        'classifiers': matches,
        'hops': [_shown(hop, addresses) for hop in hops],
        'nat': [network for group in wanted
                for network in claims.counting(
                    group, _live(group, pairs, places), ports)],
        'symmetric': str(symmetric).lower() == 'true'}
    return {host: {**common, **_path_of(chain, host, addresses)}
            for host in hosts}


def rights(chain, groups, pairs, classifiers, ports):
    """Return the networks from which a chain's hops may send at all.

    It holds for ports that are not bound, too. A definition that is in force
    for a chain that is not ready must lie in it.
    :param chain: a port chain; the other parameters are as of chain_sets
    """
    wanted = [groups[key] for key in chain['port_pair_groups']]
    claimed = [network for group in wanted if not claims.excess(
        group, [pairs[key] for key in group['port_pairs']], ports)
        for network in claims.of_group(group)]
    sources = [classifiers[key].get('logical_source_port')
               for key in chain['flow_classifiers']]
    return sorted({*claimed, *(network for key in sources if key in ports
                               for network in ports[key].usable)})


def networks(chain, groups, pairs, ports):
    """Return the ids of the networks of a chain's hops.

    The parameters are as of chain_sets; ports need not be bound.
    """
    return {ports[key].network for group in chain['port_pair_groups']
            for pair in groups[group]['port_pairs']
            for key in named_ports(pairs[pair])}


def hosts_of(steered, flows, places):
    """Return the hosts at which packets enter a chain or pass its hops.

    :param steered: the Places of its hops' ports
    :param flows: its flow classifiers
    :param places: Place by port id
    """
    entries = [flow.get('logical_source_port')
               or flow.get('logical_destination_port') for flow in flows]
    found = [*steered, *(places[key] for key in entries if key in places)]
    return sorted({place.host for place in found})


def _where(places):
    """Return the switch and segment of a chain's hops."""
    where = {(place.switch, place.segment) for place in places}
    if len(where) > 1:
        raise NotReady('ports on several switches or networks')
    return where.pop()


def path(hosts, flows, tunnels):
    """Return the address of each host of a path; none for a single host.

    :raises NotReady: the hosts cannot have a path
    """
    if len(hosts) == 1:
        return {}
    if len(hosts) > MAX_HOSTS:
        raise NotReady(f'{len(hosts)} hosts are more than {MAX_HOSTS}')
    for flow in flows:
        if not flow.get('logical_source_port'):
            raise NotReady(f'flow classifier {flow["id"]}: needs'
                           ' logical_source_port, because the ports are on'
                           ' several hosts')
    for host in hosts:
        if not tunnels.get(host):
            raise NotReady(
                'ports on several hosts, of which one has no tunnel_ip; choose'
                ' ports on one host, or let the operator set tunnel_ip of'
                ' [clickos_agent]')
    return {host: tunnels[host] for host in hosts}


def _path_of(chain, host, addresses):
    """Return the path as one of its hosts gets it."""
    if not addresses:
        return {}
    return {'path': {'number': chain['chain_id'], 'local': addresses[host],
                     'hosts': list(addresses.values())}}


def _shown(hop, addresses):
    """Name the hosts of a hop's pairs by their addresses, or not at all."""
    pairs = [{key: value for key, value in pair.items() if key != 'host'}
             | ({'host': addresses[pair['host']]} if addresses else {})
             for pair in hop['pairs']]
    return {**hop, 'pairs': pairs}


def _live(group, pairs, places):
    """Return the pairs of a group that are bound and have a weight."""
    return [pair for pair in map(pairs.get, group['port_pairs'])
            if _weight(pair) and set(named_ports(pair)) <= set(places)]


def _weight(pair):
    return int((pair.get('service_function_parameters') or {}).get(
        'weight', 1))


def _hop(group, pairs, places):
    live = _live(group, pairs, places)
    if not live:
        raise NotReady(f'port pair group {group["id"]}: no bound pair')
    for pair in live:
        if len({places[key].host for key in named_ports(pair)}) > 1:
            raise NotReady(f'port pair {pair["id"]}: ports on two hosts')
    ingresses = [places[pair['ingress']] for pair in live]
    copies = max(place.copies for place in ingresses)
    return {'pairs': [{'ingress': places[pair['ingress']].name,
                       'egress': places[pair['egress']].name,
                       'weight': _weight(pair),
                       'host': places[pair['ingress']].host}
                      for pair in live],
            'transparent': _is_transparent(ingresses),
            **({'copies': copies} if copies > 1 else {})}


def _is_transparent(ingresses):
    """Return whether a hop gets frames with the addresses of others.

    The tags of its ports say it. Ports without such tags, as earlier versions
    made them, are transparent without port security.
    """
    said = [place.transparent for place in ingresses
            if place.transparent is not None]
    return any(said) if said else not all(
        place.secure for place in ingresses)


def _end(classifier, side, places):
    """Return the Place of a classifier's port, None if it names none."""
    port = classifier.get(f'logical_{side}_port')
    if port and port not in places:
        raise NotReady(f'logical_{side}_port {port}: is not bound')
    return places[port] if port else None


def _allowed(place):
    return place.allowed if place.secure else _ALL


def _ends(source, destination, addresses):
    """Return the part of a classifier that its ports make.

    The packets of a chain with a path enter at the host of ``source``. A
    destination at another host is known by its addresses only.
    """
    found = {}
    if source:
        found['source_port'] = source.name
    if destination and (source is None or source.host == destination.host):
        found['destination_port'] = destination.name
    elif destination:
        found['destination_mac'] = destination.mac
        found['receivers'] = _allowed(destination)
    if addresses:
        if not _allowed(source):
            raise NotReady(f'port {source.name}: has no address')
        found['host'] = addresses[source.host]
        found['senders'] = _allowed(source)
        if destination:
            found['receivers'] = _allowed(destination)
    return found


def _classifier(classifier, source, destination, addresses):
    found = _ends(source, destination, addresses)
    for side in ('source', 'destination'):
        prefix = classifier.get(f'{side}_ip_prefix')
        if prefix:
            found[side] = prefix
        first = classifier.get(f'{side}_port_range_min')
        if first is not None:
            last = classifier.get(f'{side}_port_range_max')
            found[f'{side}_ports'] = {
                'first': int(first),
                'last': int(first if last is None else last)}
    if not {'source', 'destination'} & set(found):
        found['source'] = claims.ANY[
            classifier.get('ethertype') or constants.IPv4]
    if classifier.get('protocol') is not None:
        found['protocol'] = protocol_number(classifier['protocol'])
    return found


def protocol_number(protocol):
    """Return the number of a protocol by number or Neutron's name.

    :raises Unsupported: for another name
    """
    text = str(protocol).lower()
    number = int(text) if text.isdigit() else \
        constants.IP_PROTOCOL_MAP.get(text)
    if number is None or not 0 <= number <= 255:
        raise Unsupported(f'protocol {text[:20]!r}: no number or name of an'
                          ' IP protocol')
    return number

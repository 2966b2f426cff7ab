# SPDX-License-Identifier: Apache-2.0
"""A port chain of networking-sfc as valed's chain.

The functions take the dictionaries of networking-sfc's API and return the
arguments of chain-set (docs/interfaces.md, "valed").
"""

import collections

from neutron_lib import constants

#: Largest weight of a port pair, and most of each list: valed's limits.
MAX_WEIGHT = 16
MAX_HOPS = 20
MAX_PAIRS = 16
MAX_CLASSIFIERS = 16

_ANY = {constants.IPv4: '0.0.0.0/0', constants.IPv6: '::/0'}
_PORTS = ('tcp', 'udp', '6', '17')
#: The address translation that a group of port pairs declares.
_MAPPING = 'ppg_n_tuple_mapping'

#: The place of a port at a switch: host, switch, segment, name at the switch,
#: and whether port security is on.
Place = collections.namedtuple('Place', 'host switch segment name secure')
#: A port's project, its network's project, and its Place; None for a port
#: that is not bound.
Port = collections.namedtuple('Port', 'project network_project place')


class Unsupported(ValueError):
    """A part of a chain that the switch does not have."""


class Foreign(ValueError):
    """A part of a chain that is not its project's."""


class NotReady(ValueError):
    """A chain of unbound ports, or of ports on several hosts."""


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
    """Raise Unsupported for a group of taps, or of too many pairs."""
    if group.get('tap_enabled'):
        raise Unsupported('tap_enabled: the switch has no taps')
    if len(group.get('port_pairs') or ()) > MAX_PAIRS:
        raise Unsupported(f'port_pairs: more than {MAX_PAIRS}')


def check_chain(chain):
    """Raise Unsupported for a chain beyond the switch's limits."""
    for key, most in (('port_pair_groups', MAX_HOPS),
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


def named_ports(part):
    """Return the ids of the ports of a port pair or flow classifier."""
    named = (part.get(key) for key in (
        'ingress', 'egress', 'logical_source_port',
        'logical_destination_port'))
    return [key for key in named if key]


def chain_set(chain, groups, pairs, classifiers, ports):
    """Return the host of a port chain, and the arguments of chain-set.

    :param chain: a port chain
    :param groups: port pair groups by id
    :param pairs: port pairs by id
    :param classifiers: flow classifiers by id
    :param ports: Port by id
    :raises NotReady: a hop has no bound pair, or ports are on several hosts
    :raises Foreign: a part of the chain is not its project's
    """
    wanted = [groups[key] for key in chain['port_pair_groups']]
    flows = [classifiers[key] for key in chain['flow_classifiers']]
    check_scope(chain, [pairs[key] for group in wanted
                        for key in group['port_pairs']], flows, ports)
    if not wanted or not flows:
        raise NotReady('no hop or no classifier')
    places = {key: port.place for key, port in ports.items() if port.place}
    hops = [_hop(group, pairs, places) for group in wanted]
    matches = [_classifier(flow, places) for flow in flows]
    host, switch, segment = _where(
        [places[key] for group in wanted
         for pair in _live(group, pairs, places)
         for key in named_ports(pair)],
        [places[key] for flow in flows for key in named_ports(flow)])
    symmetric = (chain.get('chain_parameters') or {}).get('symmetric')
    return host, {
        'switch': switch, 'chain': chain['id'], 'segment': segment,
        'classifiers': matches, 'hops': hops,
        'nat': [network for group in wanted
                for network in _translated(group)],
        'symmetric': str(symmetric).lower() == 'true'}


def _where(hops, ends):
    """Return host, switch and segment of a chain, from Places of its ports.

    :param hops: of its hops
    :param ends: of its classifiers, which are on the same host
    """
    where = {(place.host, place.switch, place.segment) for place in hops}
    if len(where) > 1 or any(end.host != hops[0].host for end in ends):
        raise NotReady('ports on several hosts, switches or networks')
    return where.pop()


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
    return {'pairs': [{'ingress': places[pair['ingress']].name,
                       'egress': places[pair['egress']].name,
                       'weight': _weight(pair)} for pair in live],
            'transparent': not all(places[pair['ingress']].secure
                                   for pair in live)}


def _translated(group):
    """Return the source networks that a group translates to."""
    parameters = group.get('port_pair_group_parameters') or {}
    mapping = parameters.get(_MAPPING) or {}
    source = (mapping.get('egress_n_tuple') or {}).get('source_ip_prefix')
    return [source] if source else []


def _classifier(classifier, places):
    found = {}
    for side in ('source', 'destination'):
        port = classifier.get(f'logical_{side}_port')
        if port:
            if port not in places:
                raise NotReady(f'logical_{side}_port {port}')
            found[f'{side}_port'] = places[port].name
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
        found['source'] = _ANY[classifier.get('ethertype')
                               or constants.IPv4]
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

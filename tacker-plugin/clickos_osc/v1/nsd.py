# SPDX-License-Identifier: Apache-2.0
"""Network forwarding paths of a TOSCA file.

The file is a network service descriptor of SOL001, with NFP, NfpPosition,
NfpPositionElement and NfpRule, or a VNFFGD as Tacker's older APIs took it.
"""

import os

from clickos_client import plain_yaml
from osc_lib import exceptions

from clickos_osc import formatting

_MAX_BYTES = plain_yaml.MAX_BYTES
_NFP = 'tosca.nodes.nfv.NFP'
_SAP = 'tosca.nodes.nfv.Sap'
_RULE = 'tosca.policies.nfv.NfpRule'
_FP = ('tosca.nodes.nfv.FP.Tacker', 'tosca.nodes.nfv.FP.TackerV2')
#: The capability of a VNF as a whole; others are connection points.
_WHOLE = 'forwarding'

#: Keys of a --classifier by property of an NfpRule or criterion of a VNFFGD.
_RULE_KEYS = {
    'protocol': 'protocol', 'ether_type': 'ethertype',
    'source_ip_address_prefix': 'source-ip-prefix',
    'destination_ip_address_prefix': 'destination-ip-prefix',
    'source_port_range': 'source-port',
    'destination_port_range': 'destination-port'}
_CRITERIA = {
    'ip_proto': 'protocol', 'ip_src_prefix': 'source-ip-prefix',
    'ip_dst_prefix': 'destination-ip-prefix',
    'source_port_range': 'source-port',
    'destination_port_range': 'destination-port',
    'network_src_port_id': 'logical-source-port',
    'network_dst_port_id': 'logical-destination-port'}
_ETHERTYPES = {'ipv4': 'IPv4', 'ipv6': 'IPv6'}


def read(path, wanted, names):
    """Return hops and classifiers of a forwarding path, and if it is fused.

    A hop is a list of (VNF, options of --hop), a classifier is a dictionary
    of --classifier's keys. The path's property ``fused`` is a boolean.
    :param path: the file
    :param wanted: name of the path's node, None for the only one
    :param names: name or id of a VNF instance by name in the file
    """
    try:
        topology = _load(path).get('topology_template') or {}
        nodes = topology.get('node_templates') or {}
        name = _choose(nodes, wanted)
        is_fused = _is_fused(nodes, name)
        if nodes[name]['type'] == _NFP:
            hops = _positions(nodes, name)
            found = _rules(topology, name)
        else:
            hops = _forwarders(nodes[name], name)
            found = _criteria(nodes[name], name)
    except (KeyError, TypeError, AttributeError, ValueError) as exc:
        raise _bad(path, f'not a descriptor with forwarding paths: {exc!r}')
    except _Wrong as exc:
        raise _bad(path, exc)
    return [[(names.get(vnf, vnf), options) for vnf, options in hop]
            for hop in hops], found, is_fused


class _Wrong(Exception):
    """A descriptor that is wrong; the text names the node first."""


def _bad(path, reason):
    return exceptions.CommandError(formatting.line(f'{path}: {reason}'))


def _load(path):
    try:
        if os.path.getsize(path) > _MAX_BYTES:
            raise _Wrong(f'has more than {_MAX_BYTES} bytes')
        with open(path, 'rb') as source:
            return plain_yaml.load(source.read(_MAX_BYTES + 1))
    except OSError as exc:
        raise _Wrong(exc.strerror)
    except plain_yaml.Refused as exc:
        raise _Wrong(f'line {exc.line}: {exc}' if exc.line else exc)


def _choose(nodes, wanted):
    paths = [name for name, node in nodes.items()
             if node['type'] in (_NFP, *_FP)]
    if wanted is None and len(paths) == 1:
        return paths[0]
    if wanted not in paths:
        raise _Wrong(f'{wanted or "--path"}: expected one of its forwarding'
                     f' paths: {", ".join(paths) or "it has none"}')
    return wanted


def _is_fused(nodes, name):
    found = (nodes[name].get('properties') or {}).get('fused', False)
    if not isinstance(found, bool):
        raise _Wrong(f'{name}: fused: expected true or false')
    return found


def _required(nodes, name, requirement):
    """List (node's name, capability) of a node's requirements in order."""
    found = []
    for each in nodes[name].get('requirements') or []:
        for key, value in each.items():
            if key == requirement:
                value = value if isinstance(value, dict) else {'node': value}
                if value.get('node') not in nodes:
                    raise _Wrong(f'{name}: {requirement}: no node'
                                 f' {value.get("node")}')
                found.append((value['node'], value.get('capability')))
    if not found:
        raise _Wrong(f'{name}: needs a requirement {requirement}')
    return found


def _positions(nodes, name):
    """List the hops of an NFP; its service access points are no hops."""
    hops = []
    for position, _ in _required(nodes, name, 'nfp_position'):
        elements = _required(nodes, position, 'element')
        behaviour = (nodes[position].get('properties') or {}).get(
            'forwarding_behaviour', 'lb')
        if len(elements) > 1 and behaviour != 'lb':
            raise _Wrong(f'{position}: forwarding_behaviour: {behaviour}:'
                         ' only lb is supported for several elements')
        hop = [_element(nodes, element) for element, _ in elements]
        hops += [hop] if None not in hop else []
    return hops


def _element(nodes, name):
    """Return (VNF, options) of a position element; None for a SAP."""
    targets = _required(nodes, name, 'profile_element')
    vnfs = {vnf for vnf, _ in targets}
    if any(nodes[vnf]['type'] == _SAP for vnf in vnfs):
        return None
    if len(vnfs) > 1:
        raise _Wrong(f'{name}: profile_element: names several VNFs')
    points = [point for _, point in targets
              if point and point != _WHOLE and '.' not in point]
    return vnfs.pop(), dict(zip(('ingress', 'egress'), points))


def _rules(topology, name):
    """List the classifiers of the rules whose target is the path."""
    found = []
    for policy in topology.get('policies') or []:
        for rule, body in policy.items():
            if body['type'] == _RULE and name in body.get('targets', []):
                found.append(_translated(rule, body.get('properties') or {},
                                         _RULE_KEYS))
    return found


def _forwarders(node, name):
    """List the hops of a VNFFGD's path: a VNF with one or two points."""
    hops = []
    for step in node['properties']['path']:
        vnf, point = step['forwarder'], step.get('capability')
        if step.get('sfc_encap'):
            raise _Wrong(f'{name}: path: {vnf}: sfc_encap: packets have no'
                         ' encapsulation')
        if hops and hops[-1][0] == vnf and 'egress' not in hops[-1][1]:
            hops[-1][1]['egress'] = point
        else:
            hops.append((vnf, {'ingress': point} if point else {}))
    return [[hop] for hop in hops]


def _criteria(node, name):
    """List the classifiers of a VNFFGD's path."""
    criteria = (node['properties'].get('policy') or {}).get('criteria') or []
    if any('classifier' in each for each in criteria):
        return [_translated(each.get('name', name), each['classifier'],
                            _CRITERIA) for each in criteria]
    merged = {key: value for each in criteria for key, value in each.items()}
    return [_translated(name, merged, _CRITERIA)] if merged else []


def _translated(place, values, keys):
    found = {}
    for key, value in values.items():
        if key not in keys:
            raise _Wrong(f'{place}: {key}: the switch cannot match it')
        if key.endswith('_range'):
            value = (value.replace('-', ':') if isinstance(value, str)
                     else ':'.join(map(str, value)))
        found[keys[key]] = str(value)
    ethertype = found.get('ethertype')
    if ethertype is not None:
        if ethertype.lower() not in _ETHERTYPES:
            raise _Wrong(f'{place}: ether_type: {ethertype}: expected ipv4'
                         ' or ipv6')
        found['ethertype'] = _ETHERTYPES[ethertype.lower()]
    return found

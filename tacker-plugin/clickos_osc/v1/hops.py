# SPDX-License-Identifier: Apache-2.0
"""Hops and classifiers as options of a command name them."""

from keystoneauth1 import exceptions as ks_exc
from osc_lib import exceptions

from clickos_osc import formatting
from clickos_osc import lazy
from clickos_osc.v1 import guest

chains = lazy.module('clickos_client.chains')

HOP_HELP = (
    '<name>[,ingress=<port>][,egress=<port>][,weight=<n>][,nat=<network>]: a'
    ' VNF or server, by name or ID; all guests of a VNF share its flows. Ports'
    ' are those of the first two interfaces, or are named by port or'
    ' connection point. A hop that translates sources has the network of its'
    ' public addresses. Join instances of one hop with +')
CLASSIFIER_HELP = (
    '<key>=<value>[,<key>=<value>...]: packets that enter the chain. Keys:'
    ' protocol, ethertype, source-ip-prefix, destination-ip-prefix,'
    ' source-port, destination-port (<first>[:<last>]), logical-source-port,'
    ' logical-destination-port (a port of Neutron)')

_OPTIONS = ('ingress', 'egress', 'weight', 'nat')
_MAX_WEIGHT = 16
_TEXTS = ('protocol', 'ethertype', 'source-ip-prefix',
          'destination-ip-prefix')
_RANGES = ('source-port', 'destination-port')
_PORTS = ('logical-source-port', 'logical-destination-port')


def parse(manager, text):
    """Return (name, list of chains.Guest) of a --hop.

    :param manager: openstackclient's client manager
    """
    parts = []
    for part in text.split('+'):
        name, _, options = part.partition(',')
        parts.append((name, _pairs(f'--hop {part}', options)
                      if options else {}))
    return resolve(manager, parts)


def resolve(manager, parts):
    """Return (name, list of chains.Guest) of a hop.

    :param parts: list of (VNF or server, dictionary of options)
    """
    found = []
    for name, options in parts:
        found += _guests(manager, name, _checked(name, options))
    return '+'.join(name for name, _ in parts), found


def classifier(manager, text):
    """Return the values of a flow classifier of a --classifier."""
    return flow(manager, _pairs('--classifier', text))


def flow(manager, pairs):
    """Return the values of a flow classifier with --classifier's keys."""
    values = {}
    for key, value in pairs.items():
        if key in _TEXTS:
            values[key.replace('-', '_')] = value
        elif key in _RANGES:
            values.update(_range(key, value))
        elif key in _PORTS:
            network = manager.sdk_connection.network
            # By name only within the project; an id says which it is.
            port = network.find_port(value, ignore_missing=False,
                                     project_id=network.get_project_id())
            values[key.replace('-', '_')] = port.id
        else:
            known = ', '.join((*_TEXTS, *_RANGES, *_PORTS))
            raise exceptions.CommandError(
                f'--classifier {formatting.line(key)}: expected one of'
                f' {known}')
    if any(':' in values.get(f'{side}_ip_prefix', '')
           for side in ('source', 'destination')):
        values.setdefault('ethertype', 'IPv6')
    return values


def _range(key, value):
    first, _, last = value.partition(':')
    try:
        ends = (int(first), int(last or first))
    except ValueError:
        raise exceptions.CommandError(
            f'--classifier {key}={formatting.line(value)}: expected a port, or'
            ' <first>:<last>')
    name = key.replace('-', '_')
    return {f'{name}_range_min': ends[0], f'{name}_range_max': ends[1]}


def _checked(name, options):
    for key in options.keys() - set(_OPTIONS):
        raise exceptions.CommandError(
            f'--hop {formatting.line(name)}: {formatting.line(key)}:'
            ' expected one of'
            f' {", ".join(_OPTIONS)}')
    weight = options.get('weight', '1')
    if not weight.isdecimal() or not 0 <= int(weight) <= _MAX_WEIGHT:
        raise exceptions.CommandError(
            f'--hop {formatting.line(name)}: weight: expected 0 to'
            f' {_MAX_WEIGHT}')
    return {**options, 'weight': int(weight)}


def _pairs(place, text):
    """Return the keys and values of text."""
    values = {}
    for pair in text.split(','):
        key, separator, value = pair.partition('=')
        if not separator or not value or key in values:
            raise exceptions.CommandError(
                f'{formatting.line(place)}: {formatting.line(pair)}: expected'
                ' <key>=<value>, each key once')
        values[key] = value
    return values


def _guests(manager, name, options):
    """List the guests of a VNF or server."""
    servers = _vnf_servers(manager, name)
    if servers is None:
        compute = manager.sdk_connection.compute
        server = compute.find_server(name, ignore_missing=True)
        if server is None:
            raise exceptions.CommandError(
                f'--hop {formatting.line(name)}: no VNF and no server has this'
                ' name or ID')
        servers = {server.id: None}
    return [_guest(manager, name, server, ports, options)
            for server, ports in servers.items()]


def _vnf_servers(manager, name):
    """Return the ids of a VNF's ports by server; None if it is no VNF."""
    try:
        ids = guest.vnf_ids(manager, name)
    except ks_exc.EndpointNotFound:
        return None
    if not ids:
        return None
    mark = chains.VNF_MARK + guest.only_vnf(ids, name)
    servers = {}
    for port in chains.ports(manager.sdk_connection.network, mark):
        if port.device_id:
            servers.setdefault(port.device_id, []).append(port.id)
    if not servers:
        raise exceptions.CommandError(
            f'--hop {formatting.line(name)}: the VNF has no guest;'
            ' instantiate it')
    return servers


def _guest(manager, name, server_id, ports, options):
    """Return the guest with its ports in the order of its interfaces."""
    connection = manager.sdk_connection
    server = connection.compute.get_server(server_id)
    known = [port for port
             in chains.server_ports(connection.network, server_id)
             if ports is None or port.id in ports]
    return chains.guest(name, known, server.addresses, **options)

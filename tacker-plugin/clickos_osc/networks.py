# SPDX-License-Identifier: Apache-2.0
"""Networks of connection points: --network left=NET[,ip=ADDRESS]."""

import ipaddress

from osc_lib import exceptions

from clickos_osc import formatting
from clickos_osc import lazy

chains = lazy.module('clickos_client.chains')
connections = lazy.module('clickos_client.connections')

HELP = ('Network of a connection point, by name or ID, and maybe addresses of'
        ' its port; may be repeated')
METAVAR = '<point>=<network>[,ip=<address>]'


def links(manager, points, texts, is_complete=True):
    """Return SOL003's extVirtualLinks.

    :param points: the connection_points of descriptor_reader.read()
    :param texts: of each option
    :param is_complete: each point outside the VNF needs a network
    :raises CommandError: that names the option
    """
    outer = [each['name'] for each in points if not each['internal']]
    found = {}
    for text in texts:
        point, separator, rest = text.partition('=')
        if not separator or point not in outer or point in found:
            raise _bad(point, 'expected <point>=<network>, each connection'
                       f' point once; they are: {", ".join(outer)}')
        found[point] = _link(manager, point, rest)
    missing = [point for point in outer if point not in found]
    if is_complete and missing:
        raise exceptions.CommandError(formatting.line(
            f'--network: no network for {", ".join(missing)}; such as'
            f' --network {missing[0]}=NETWORK'))
    return list(found.values())


def _link(manager, point, text):
    network, *addresses = text.split(',ip=')
    found = _find(manager, point, network)
    return connections.link(point, found,
                            [_address(point, each) for each in addresses])


def _find(manager, point, name):
    try:
        return chains.find_network(manager.sdk_connection.network, name).id
    except chains.ChainError as exc:
        raise _bad(point, str(exc))


def _address(point, text):
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        raise _bad(point, f'ip: expected an address, got {text[:64]}')


def _bad(point, reason):
    return exceptions.CommandError(
        formatting.line(f'--network {point[:64]}: {reason}'))

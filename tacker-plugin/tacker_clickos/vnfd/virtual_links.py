# SPDX-License-Identifier: Apache-2.0
"""Reads the internal virtual links of a VNF: networks of its own."""

import ipaddress
import re

from tacker_clickos.vnfd import model
from tacker_clickos.vnfd import topology

MAX_LINKS = 8
_NAME = re.compile(r'[A-Za-z][A-Za-z0-9_-]{0,31}\Z')
#: Networks of links whose descriptor names none; they may repeat per VNF.
_DEFAULT = '192.168.%d.0/24'
_KEYS = ('name', 'ip_version', 'cidr', 'dhcp_enabled')


def read(place, nodes, types):
    """Return {name: model.InternalLink} and {CP: link name}.

    :raises: VnfdInvalid naming the link
    """
    links = {}
    for name, node in nodes.items():
        if types.is_a(node['type'], topology.LINK):
            links[name] = _link('%s: %s' % (place, name), name, node,
                                len(links))
    if len(links) > MAX_LINKS:
        raise topology.refused(place, '%d virtual links, the limit is %d'
                               % (len(links), MAX_LINKS))
    points = {}
    for name, node in nodes.items():
        if types.is_a(node['type'], topology.CP):
            for target in topology.targets(node, 'virtual_link'):
                if target not in links:
                    raise topology.refused(
                        '%s: %s' % (place, name), 'virtual_link %s is not '
                        'a node of type %s' % (str(target)[:64],
                                               topology.LINK))
                points[name] = target
    return links, points


def _link(where, name, node, number):
    if not _NAME.match(name):
        raise topology.refused(where, 'a link name has A-Z a-z 0-9 _ - and '
                               'at most 32 characters')
    data = _layer_3(where, topology.dig(node, 'properties', 'vl_profile'))
    unknown = sorted(str(key) for key in data if key not in _KEYS)
    if unknown:
        raise topology.refused(where, 'l3_protocol_data: %s is not supported;'
                               ' ClickOS follows only %s'
                               % (unknown[0][:64], ', '.join(_KEYS)))
    if data.get('dhcp_enabled'):
        raise topology.refused(where, 'dhcp_enabled: guests get their '
                               'addresses in the configuration')
    text = data.get('cidr') or _DEFAULT % (100 + number)
    try:
        network = ipaddress.ip_network(str(text))
    except ValueError as error:
        raise topology.refused(where, 'cidr: %s' % str(error)[:128])
    wanted = str(data.get('ip_version', 'ipv%d' % network.version)).lower()
    if wanted != 'ipv%d' % network.version:
        raise topology.refused(where, 'ip_version %s, but the cidr is %s'
                               % (wanted[:32], network))
    return model.InternalLink(name=name, cidr=str(network))


def _layer_3(where, profile):
    """Return the l3_protocol_data of a link's profile; it may have one."""
    entries = profile.get('virtual_link_protocol_data') or []
    if not isinstance(entries, list) or len(entries) > 1:
        raise topology.refused(where, 'virtual_link_protocol_data: expected '
                               'a list of one')
    for entry in entries:
        if topology.dig({'': entry}, '').get('l2_protocol_data'):
            raise topology.refused(where, 'l2_protocol_data is not supported;'
                                   ' Neutron chooses the kind of network')
        return topology.dig(entry, 'l3_protocol_data')
    return {}

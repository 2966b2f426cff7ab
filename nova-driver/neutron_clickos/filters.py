# SPDX-License-Identifier: Apache-2.0
"""Security groups of ports as rules of valed's filters.

Neutron's own code expands remote groups and address groups. A rule that the
switch cannot express permits nothing, and the log names it.
"""

from neutron.plugins.ml2 import db as ml2_db
from neutron_lib.api.definitions import port_security
from neutron_lib import constants
from neutron_lib import context as neutron_context
from neutron_lib.plugins import directory
from oslo_log import log as logging

LOG = logging.getLogger(__name__)

#: Most rules of a port (docs/interfaces.md, "port-filter").
MAX_RULES = 1024
_FAMILIES = {constants.IPv4: 'ipv4', constants.IPv6: 'ipv6'}
_REMOTES = {'ingress': 'source_ip_prefix', 'egress': 'dest_ip_prefix'}
_ICMP = {constants.IPv4: 1, constants.IPv6: 58}
#: Protocols whose ports the switch matches.
_WITH_PORTS = (6, 17)


def of_ports(port_ids):
    """Return the rules of ports: a list, or None for a port without filter.

    A port without port security has no filter. A port without a security
    group has one that permits nothing, as with other drivers of Neutron.

    :param port_ids: ids of ports, those that exist are answered
    """
    if not port_ids:
        return {}   # Neutron would answer for all ports of the cloud
    context = neutron_context.get_admin_context()
    ports = {}
    found = ml2_db.get_sg_ids_grouped_by_port(context, list(port_ids))
    for port, groups in found.items():
        ports[port.id] = ml2_db.make_port_dict_with_security_groups(
            port, groups)
    secured = {port_id: port for port_id, port in ports.items()
               if port.get(port_security.PORTSECURITY, True)}
    directory.get_plugin().security_group_rules_for_ports(context, secured)
    return {port_id: _rules(secured[port_id]) if port_id in secured else None
            for port_id in ports}


def _rules(port):
    rules = []
    for rule in port['security_group_rules']:
        translated = _rule(port['id'], rule)
        if translated is not None and translated not in rules:
            rules.append(translated)
    if len(rules) > MAX_RULES:
        LOG.warning('Port %(port)s: %(count)d rules of its security groups, '
                    'the switch takes %(max)d and gets these only',
                    {'port': port['id'], 'count': len(rules),
                     'max': MAX_RULES})
    return rules[:MAX_RULES]


def _rule(port_id, rule):
    """Return a rule of the switch; None for one it has, or cannot have."""
    if 'source_port_range_min' in rule:
        return None     # DHCP answers and neighbors, which valed permits
    ethertype, direction = rule['ethertype'], rule['direction']
    found = {'direction': direction, 'family': _FAMILIES[ethertype]}
    protocol = _protocol(ethertype, rule.get('protocol'))
    if protocol is not None:
        found['protocol'] = protocol
    if rule.get(_REMOTES[direction]):
        found['remote'] = rule[_REMOTES[direction]]
    first, last = rule.get('port_range_min'), rule.get('port_range_max')
    if first is None:
        return found
    if protocol == _ICMP[ethertype]:
        last = first    # the code of ICMP is not matched
    elif protocol not in _WITH_PORTS:
        LOG.warning('Port %(port)s: rule %(rule)s: the switch knows ports of '
                    'TCP and UDP only, so the rule permits nothing',
                    {'port': port_id, 'rule': rule})
        return None
    found['ports'] = {'first': first, 'last': first if last is None else last}
    return found


def _protocol(ethertype, name):
    """Return the number of a protocol, None for any."""
    if name in (None, 'any', '0', 0):
        return None
    if name == constants.PROTO_NAME_ICMP:
        return _ICMP[ethertype]
    number = constants.IP_PROTOCOL_MAP.get(name, name)
    return int(number)

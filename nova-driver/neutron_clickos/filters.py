# SPDX-License-Identifier: Apache-2.0
"""Security groups of ports as rules of valed's filters.

Neutron's own code expands remote groups and address groups. A rule that the
switch cannot express permits nothing, and the log names it. The rules of a
port that are too many are no rules at all: a part of them would be another
policy than the tenant wrote.
"""

import weakref

from clickos_client import neutron_rpc
from neutron.db.models import securitygroup as sg_models
from neutron.db import models_v2
from neutron.objects import securitygroup
from neutron.plugins.ml2 import db as ml2_db
from neutron.plugins.ml2 import models
from neutron_lib.api.definitions import port_security
from neutron_lib import constants
from neutron_lib import context as neutron_context
from neutron_lib.db import api as db_api
from neutron_lib import exceptions
from neutron_lib.plugins import directory
from oslo_log import log as logging
from oslo_serialization import jsonutils

LOG = logging.getLogger(__name__)

#: Most rules of a port (vale-proto, PortFilter).
MAX_RULES = 1024
_FAMILIES = {constants.IPv4: 'ipv4', constants.IPv6: 'ipv6'}
_REMOTES = {'ingress': 'source_ip_prefix', 'egress': 'dest_ip_prefix'}
_ICMP = {constants.IPv4: 1, constants.IPv6: 58}
#: Protocols whose ports the switch matches.
_WITH_PORTS = frozenset((
    constants.PROTO_NUM_TCP, constants.PROTO_NUM_UDP,
    constants.PROTO_NUM_DCCP, constants.PROTO_NUM_SCTP,
    constants.PROTO_NUM_UDPLITE))
#: Ports of a group that are checked before a rule comes: the work of a
#: request has a bound. The others are down if they get too many rules.
_MAX_CHECKED = 16
#: {transaction of a bulk: {group: {port: rules it has and gets}}}
_bulks = weakref.WeakKeyDictionary()
#: Refused ports that are remembered.
_MAX_TOLD = 4096
_told = set()
#: Keys of a rule that agents of format 1 do not know.
_NEW_KEYS = ('code', 'stateless')


class TooManyRules(exceptions.Conflict):
    """A rule that has no room in the switch."""

    message = ("Security group %(group)s: with this rule, port %(port)s would "
               "have %(count)d rules, and its switch takes %(max)d. Use "
               "remote prefixes instead of groups, or fewer rules.")


def of_ports(port_ids, policy_format=neutron_rpc.POLICY_FORMAT):
    """Return the rules of ports: a list, or None for a port without filter.

    A port without port security has no filter. A port without a security
    group has one that permits nothing, as with other drivers of Neutron.

    :param port_ids: ids of ports, those that exist are answered
    :param policy_format: of the agent, as in neutron_rpc
    :returns: rules by port id, and the reason by the id of a port whose
        rules are too many
    """
    rules, refused = {}, {}
    for port_id, found in _all(port_ids, policy_format).items():
        if found is None or len(found) <= MAX_RULES:
            rules[port_id] = found
            continue
        refused[port_id] = ('%d rules of its security groups, the switch '
                            'takes %d' % (len(found), MAX_RULES))
    _tell(rules, refused)
    return rules, refused


def _tell(rules, refused):
    """Log what is refused, once: agents ask every few seconds."""
    _told.difference_update(rules)
    for port_id in refused.keys() - _told:
        LOG.error('Port %(port)s is not active, and keeps the rules that it '
                  'has: %(why)s', {'port': port_id, 'why': refused[port_id]})
    _told.update(refused)
    while len(_told) > _MAX_TOLD:
        _told.pop()


def check_room(context, group, rules):
    """Refuse rules that a port of their group has no room for.

    Neutron makes the rules of a bulk in one transaction, and asks before
    each. The ports are looked up for the first one, and all rules count.

    :param group: id of the security group
    :param rules: that come
    :raises: TooManyRules, an HTTP 409
    """
    counts = _counts(context, group)
    for port_id in counts:
        counts[port_id] += len(rules)
        if counts[port_id] > MAX_RULES:
            raise TooManyRules(group=group, port=port_id,
                               count=counts[port_id], max=MAX_RULES)


def _counts(context, group):
    """:returns: {port id: number of rules}, the same one within a bulk"""
    transaction = context.session.get_transaction()
    known = {} if transaction is None else _bulks.setdefault(transaction, {})
    if group not in known:
        known[group] = {
            port_id: len(found) for port_id, found
            in _all(_ports_of(context, group)).items() if found is not None}
    return known[group]


def _ports_of(context, group):
    """:returns: ids of the ports of a group that a switch of ours has

    Only those of the group's project: others, with which it shares the group,
    must not keep it from changing its rules, and their ports are not shown.
    """
    member, binding = sg_models.SecurityGroupPortBinding, models.PortBinding
    port, owner = models_v2.Port, sg_models.SecurityGroup
    with db_api.CONTEXT_READER.using(context) as session:
        rows = session.query(member.port_id).join(
            binding, binding.port_id == member.port_id).join(
            port, port.id == member.port_id).join(
            owner, owner.id == member.security_group_id).filter(
                member.security_group_id == group,
                port.project_id == owner.project_id,
                binding.vif_type == 'vale').distinct().limit(
                    _MAX_CHECKED).all()
    return [row.port_id for row in rows]


def _all(port_ids, policy_format=neutron_rpc.POLICY_FORMAT):
    """:returns: all rules, or None, by port id"""
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
    stateful = _stateful(context, secured.values())
    return {port_id: _rules(secured[port_id], stateful, policy_format)
            if port_id in secured else None for port_id in ports}


def _stateful(context, ports):
    """:returns: whether rules begin connections, by security group"""
    groups = {rule.get('security_group_id') for port in ports
              for rule in port['security_group_rules']}
    groups.discard(None)   # rules of the provider
    return securitygroup.SecurityGroup.get_sgs_stateful_flag(
        context, sorted(groups)) if groups else {}


def _rules(port, stateful, policy_format):
    """:returns: the port's rules, each once, in their order"""
    rules = {}
    for rule in port['security_group_rules']:
        translated = _rule(port['id'], rule)
        if translated is None:
            continue
        if not stateful.get(rule.get('security_group_id'), True):
            translated['stateless'] = True
        if policy_format < 2:
            translated = {key: value for key, value in translated.items()
                          if key not in _NEW_KEYS}
        rules.setdefault(jsonutils.dumps(translated, sort_keys=True),
                         translated)
    return list(rules.values())


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
        if last is not None:
            found['code'] = last
        last = first
    elif protocol not in _WITH_PORTS:
        LOG.warning('Port %(port)s: rule %(rule)s: the switch knows no ports '
                    'of this protocol, so the rule permits nothing',
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

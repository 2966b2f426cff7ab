# SPDX-License-Identifier: Apache-2.0
"""Reads which guests run on one host, or on different ones.

SOL001 has policies AffinityRule and AntiAffinityRule, whose targets are VDUs
or placement groups. Nova keeps them by server groups.
"""

from tacker_clickos.vnfd import model
from tacker_clickos.vnfd import topology

AFFINITY = 'tosca.policies.nfv.AffinityRule'
ANTI_AFFINITY = 'tosca.policies.nfv.AntiAffinityRule'
PLACEMENT = 'tosca.groups.nfv.PlacementGroup'
POLICIES = {AFFINITY: 'affinity', ANTI_AFFINITY: 'anti-affinity'}
_SCOPE = 'nfvi_node'
MAX_RULES = 8


def read(place, rules, template, vdus):
    """Return the model.Placement rules of a topology.

    :param rules: {name: (type, policy)}
    :param template: the topology, for its groups
    :param vdus: names of the VDUs
    :raises: VnfdInvalid naming the policy
    """
    groups = _groups(place, topology.dig(template, 'groups'), vdus)
    if len(rules) > MAX_RULES:
        raise topology.refused(place, '%d affinity rules, the limit is %d'
                               % (len(rules), MAX_RULES))
    found = []
    for name, (kind, policy) in rules.items():
        found.append(_rule('%s: %s' % (place, name), name, kind, policy,
                           groups, vdus))
    _check_once(place, found)
    return tuple(found)


def _groups(place, entries, vdus):
    """Return {group: VDUs}; refuse groups of other types."""
    found = {}
    for name, entry in entries.items():
        where = '%s: %s' % (place, name)
        kind = topology.dig({'': entry}, '').get('type')
        if kind != PLACEMENT:
            raise topology.refused(where, 'group type %s is not supported; '
                                   'ClickOS knows %s'
                                   % (str(kind)[:128], PLACEMENT))
        found[name] = _vdus(where, entry.get('members'), vdus)
    return found


def _vdus(where, names, vdus):
    if not isinstance(names, list) or not names:
        raise topology.refused(where, 'expected a list of VDUs')
    for name in names:
        if name not in vdus:
            raise topology.refused(where, '%s is no VDU of the VNFD'
                                   % str(name)[:64])
    return names


def _rule(where, name, kind, policy, groups, vdus):
    scope = topology.dig(policy, 'properties').get('scope')
    if scope != _SCOPE:
        raise topology.refused(where, 'scope %r is not supported; ClickOS '
                               'knows %s' % (str(scope)[:64], _SCOPE))
    targets = policy.get('targets')
    members = []
    for target in targets if isinstance(targets, list) else ():
        members += groups.get(target) or _vdus(where, [target], vdus)
    if not members:
        raise topology.refused(where, 'targets: expected a list of VDUs or '
                               'groups')
    return model.Placement(name=name, policy=POLICIES[kind],
                           vdus=tuple(sorted(set(members))))


def _check_once(place, rules):
    """Nova takes a server into one group."""
    seen = {}
    for rule in rules:
        for vdu in rule.vdus:
            if vdu in seen:
                raise topology.refused(
                    place, '%s: the rules %s and %s both place it; Nova '
                    'knows one' % (vdu, seen[vdu], rule.name))
            seen[vdu] = rule.name

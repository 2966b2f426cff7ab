# SPDX-License-Identifier: Apache-2.0
"""Reads how far the VDUs of a VNFD scale (SOL001 2.8.1, 6.10: policies).

Tacker counts guests as initial + step * level. A VNFD that says anything
else is refused, since its author would get another number of guests.
"""

from tacker_clickos.vnfd import model
from tacker_clickos.vnfd import topology

ASPECTS = 'tosca.policies.nfv.ScalingAspects'
DELTAS = 'tosca.policies.nfv.VduScalingAspectDeltas'
INITIAL = 'tosca.policies.nfv.VduInitialDelta'
LEVELS = 'tosca.policies.nfv.InstantiationLevels'
VDU_LEVELS = 'tosca.policies.nfv.VduInstantiationLevels'
#: Most guests of a VDU; a host runs 256.
MAX_GUESTS = 64
_KINDS = (ASPECTS, DELTAS, INITIAL, LEVELS, VDU_LEVELS)
_NUMBER = 'number_of_instances'


def is_known(kind):
    """Return whether a policy's type says how a VNF scales.

    Tacker reads these types only, not what derives from them.
    """
    return kind in _KINDS


def read(place, policies, vdus):
    """Return the model.Scaling of a flavour.

    :param place: the file, for errors
    :param policies: {name: policy}, those that is_known() knows
    :param vdus: names of the VDUs
    :raises: VnfdInvalid naming the policy
    """
    kinds = {kind: {} for kind in _KINDS}
    for name, policy in policies.items():
        kinds[policy['type']]['%s: %s' % (place, name)] = policy
    initial = _initial(kinds[INITIAL], vdus)
    aspects = {}
    for where, policy in kinds[ASPECTS].items():
        for name, entry in topology.dig(policy, 'properties',
                                        'aspects').items():
            aspects[name] = _aspect(where, name, entry, kinds[DELTAS],
                                    initial, vdus)
    _check_targets(place, aspects, initial)
    levels, default = _levels(place, kinds[LEVELS], aspects)
    scaling = model.Scaling(aspects=aspects, levels=levels, default=default)
    _check_vdu_levels(kinds[VDU_LEVELS], scaling)
    return scaling


def _initial(policies, vdus):
    """Return {VDU: guests at level 0}."""
    found = {}
    for where, policy in policies.items():
        delta = topology.dig(policy, 'properties', 'initial_delta')
        number = _number(where, 'initial_delta', delta.get(_NUMBER))
        for vdu in _targets(where, policy, vdus):
            found[vdu] = number
    return found


def _aspect(where, name, entry, deltas, initial, vdus):
    """Return a model.Aspect; Tacker knows one size of step."""
    mine = {place: policy for place, policy in deltas.items()
            if topology.dig(policy, 'properties').get('aspect') == name}
    if len(mine) != 1:
        raise topology.refused(where, 'aspect %s: expected one policy of '
                               'type %s for it, found %d'
                               % (name, DELTAS, len(mine)))
    ((place, policy),) = mine.items()
    entry = topology.dig({name: entry}, name)
    step = _step(place, entry, topology.dig(policy, 'properties', 'deltas'))
    steps = {vdu: step for vdu in _targets(place, policy, vdus)}
    top = _number(where, 'aspect %s: max_scale_level' % name,
                  entry.get('max_scale_level'))
    missing = [vdu for vdu in steps if vdu not in initial]
    if missing:
        raise topology.refused(where, 'aspect %s: %s has no policy of type '
                               '%s' % (name, missing[0], INITIAL))
    aspect = model.Aspect(name=name, max_level=top, steps=steps,
                          initial={vdu: initial[vdu] for vdu in steps})
    for vdu, count in aspect.guests(top).items():
        _number(where, 'aspect %s: guests of %s at level %d'
                % (name, vdu, top), count)
    return aspect


def _step(where, entry, deltas):
    """Return how many guests a step adds."""
    names = entry.get('step_deltas')
    if not isinstance(names, list) or not names:
        raise topology.refused(where, 'its aspect has no step_deltas')
    sizes = {_number(where, 'delta %s' % name,
                     topology.dig(deltas, name).get(_NUMBER))
             for name in names}
    if len(sizes) != 1 or 0 in sizes:
        raise topology.refused(where, 'deltas: expected steps of one size '
                               'above 0, found %s' % sorted(sizes))
    return sizes.pop()


def _check_targets(place, aspects, initial):
    """Refuse numbers of a VDU that no aspect, or two aspects give."""
    seen = {}
    for aspect in aspects.values():
        for vdu in aspect.steps:
            if vdu in seen:
                raise topology.refused(place, '%s: the aspects %s and %s '
                                       'both scale it'
                                       % (vdu, seen[vdu], aspect.name))
            seen[vdu] = aspect.name
    for vdu, count in initial.items():
        if vdu not in seen and count != 1:
            raise topology.refused(place, '%s: initial_delta is %d, but no '
                                   'aspect scales it' % (vdu, count))


def _levels(place, policies, aspects):
    """Return {level: {aspect: its scale level}} and the default's name."""
    if len(policies) > 1 or aspects and not policies:
        raise topology.refused(place, 'expected one policy of type %s, found '
                               '%d' % (LEVELS, len(policies)))
    for where, policy in policies.items():
        properties = topology.dig(policy, 'properties')
        entries = topology.dig(properties, 'levels')
        levels = {level: _level(where, level, entries[level], aspects)
                  for level in entries}
        default = properties.get('default_level')
        if aspects and default not in levels:
            raise topology.refused(where, 'default_level %r is not one of '
                                   'its levels' % str(default)[:64])
        return levels, default
    return {}, None


def _level(where, level, entry, aspects):
    """Return {aspect: its scale level} of an instantiation level."""
    info = entry.get('scale_info') if isinstance(entry, dict) else None
    if not isinstance(info, dict) or set(info) != set(aspects):
        raise topology.refused(where, 'level %s: scale_info has to name the '
                               'aspects %s' % (level, sorted(aspects)))
    found = {}
    for name in info:
        found[name] = _number(where, 'level %s: %s' % (level, name),
                              topology.dig(info, name).get('scale_level'))
        if found[name] > aspects[name].max_level:
            raise topology.refused(
                where, 'level %s: %s: level %d, the limit is %d'
                % (level, name, found[name], aspects[name].max_level))
    return found


def _check_vdu_levels(policies, scaling):
    """Refuse numbers per VDU that differ from those of the steps."""
    for where, policy in policies.items():
        levels = topology.dig(policy, 'properties', 'levels')
        for vdu in policy.get('targets') or []:
            for level in levels:
                wanted = topology.dig(levels, level).get(_NUMBER)
                counted = scaling.guests(level).get(vdu, 1)
                if wanted != counted:
                    raise topology.refused(
                        where, 'level %s: %s: number_of_instances is %r, the '
                        'steps make %d' % (level, vdu, wanted, counted))


def _targets(where, policy, vdus):
    targets = policy.get('targets') or []
    for vdu in targets:
        if vdu not in vdus:
            raise topology.refused(where, 'target %s is no VDU of the VNFD'
                                   % str(vdu)[:64])
    return targets


def _number(where, what, value, least=0):
    if isinstance(value, bool) or not isinstance(value, int) \
            or not least <= value <= MAX_GUESTS:
        raise topology.refused(where, '%s: expected %d to %d, got %r'
                               % (what, least, MAX_GUESTS, str(value)[:32]))
    return value

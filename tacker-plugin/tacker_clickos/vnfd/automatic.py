# SPDX-License-Identifier: Apache-2.0
"""Reads when a VNF heals and scales by itself."""

import re

from tacker_clickos.vnfd import model
from tacker_clickos.vnfd import topology

HEAL = 'clickos.policies.AutoHeal'
SCALE = 'clickos.policies.AutoScale'
KINDS = (HEAL, SCALE)
MAX_POLICIES = 8
#: Pairs of a policy of SCALE and a target: the watcher reads the guests of
#: each in every round.
MAX_SCALES = 16
_HANDLER = re.compile(r'[A-Za-z0-9_@/]{1,128}\.[a-z0-9_]{1,64}\Z')
_MEASURES = ('rate', 'value')
_MOST = 10 ** 12
_KEYS = frozenset(('aspect', 'handler', 'measure', 'scale_out_above',
                   'scale_in_below', 'cooldown'))


def read(place, policies, vdus, aspects):
    """Return the model.Automatic of a flavour.

    :param policies: {name: policy} of KINDS or derived types
    :param vdus: names of the VDUs
    :param aspects: {name: model.Aspect}
    :raises: VnfdInvalid naming the policy
    """
    if len(policies) > MAX_POLICIES:
        raise topology.refused(place, '%d policies of types %s, the limit is '
                               '%d' % (len(policies), ', '.join(KINDS),
                                       MAX_POLICIES))
    healed, scales = set(), []
    for name, (kind, policy) in policies.items():
        where = '%s: %s' % (place, name)
        targets = _targets(where, policy, vdus)
        if kind == HEAL:
            healed.update(targets)
        else:
            scales += [_scale(where, policy, vdu, aspects)
                       for vdu in targets]
    if len(scales) > MAX_SCALES:
        raise topology.refused(place, '%d targets of policies of type %s, the '
                               'limit is %d' % (len(scales), SCALE,
                                                MAX_SCALES))
    return model.Automatic(tuple(sorted(healed)), tuple(scales))


def _targets(where, policy, vdus):
    targets = policy.get('targets')
    if not isinstance(targets, list) or not targets:
        raise topology.refused(where, 'targets: expected a list of VDUs')
    seen = set()
    for vdu in targets:
        if not isinstance(vdu, str) or vdu not in vdus:
            raise topology.refused(where, 'target %s is no VDU of the VNFD'
                                   % str(vdu)[:64])
        if vdu in seen:
            raise topology.refused(where, 'target %s is repeated, expected '
                                   'each VDU once' % vdu[:64])
        seen.add(vdu)
    return targets


def _scale(where, policy, vdu, aspects):
    settings = topology.dig(policy, 'properties')
    unknown = sorted(str(key) for key in settings if key not in _KEYS)
    if unknown:
        raise topology.refused(where, 'unknown key %s; there are %s'
                               % (unknown[0][:64], ', '.join(sorted(_KEYS))))
    name = settings.get('aspect')
    aspect = aspects.get(name) if isinstance(name, str) else None
    if aspect is None or vdu not in aspect.steps:
        raise topology.refused(where, 'aspect %r does not scale %s'
                               % (str(name)[:64], vdu))
    handler = settings.get('handler')
    if not isinstance(handler, str) or not _HANDLER.match(handler):
        raise topology.refused(where, 'handler %r is not a name'
                               % str(handler)[:64])
    if settings.get('measure', 'rate') not in _MEASURES:
        raise topology.refused(where, 'measure must be one of %s'
                               % ', '.join(_MEASURES))
    above = _number(where, settings, 'scale_out_above', _MOST)
    below = _number(where, settings, 'scale_in_below', _MOST, 0)
    if below >= above:
        raise topology.refused(where, 'scale_in_below %d is not below '
                               'scale_out_above %d' % (below, above))
    return model.AutoScale(
        vdu=vdu, aspect=name, handler=handler,
        measure=settings.get('measure', 'rate'), above=above, below=below,
        cooldown_s=_number(where, settings, 'cooldown', 86400, 60),
        max_level=aspect.max_level)


def _number(where, settings, key, most, default=None):
    number = settings.get(key, default)
    if isinstance(number, bool) or not isinstance(number, int) \
            or not 0 <= number <= most:
        raise topology.refused(where, '%s: expected a whole number of 0 to '
                               '%d, got %r' % (key, most, str(number)[:32]))
    return number

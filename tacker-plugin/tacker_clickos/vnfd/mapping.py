# SPDX-License-Identifier: Apache-2.0
"""From the policy clickos.policies.Configuration to model.Property.

The VNFD is a tenant's file: everything in it is checked here.
"""

import re

from tacker_clickos import exception
from tacker_clickos.vnfd import model
from tacker_clickos.vnfd import values

MAX_PROPERTIES = 64
_NAME = re.compile(r'[a-z][a-z0-9_]{0,63}\Z')
_HANDLER = re.compile(r'[A-Za-z0-9_@/]{1,128}\.[a-z0-9_]{1,64}\Z')
_DEFINE = re.compile(r'[A-Z][A-Z0-9_]{0,63}\Z')
_KEYS = frozenset(('type', 'handler', 'define', 'default', 'min', 'max',
                   'values', 'max_items', 'description'))


def properties(place, table, faults):
    """Return {name: model.Property} of the properties without a fault.

    :param place: where the table stands, for messages
    :param table: the policy's `properties`
    :param faults: list that gets the faults of single properties
    :raises: VnfdInvalid for a fault of the whole table
    """
    if not isinstance(table, dict):
        raise _invalid(place, 'properties must be a map')
    if len(table) > MAX_PROPERTIES:
        raise _invalid(place, '%d properties, the limit is %d'
                       % (len(table), MAX_PROPERTIES))
    found = {}
    for name, entry in table.items():
        try:
            found[name] = _property('%s: property %s' % (place, name), name,
                                    entry)
        except exception.VnfdInvalid as fault:
            faults.append(fault)
    _check_targets(place, found.values())
    return found


def _invalid(place, reason):
    return exception.VnfdInvalid(place=place, reason=reason)


def _property(place, name, entry):
    _check_names(place, name, entry)
    prop = model.Property(
        name=name, type=entry['type'], handler=entry.get('handler'),
        define=entry.get('define'), minimum=_count(place, entry, 'min'),
        maximum=_count(place, entry, 'max'),
        values=_enum_values(place, entry),
        max_items=_count(place, entry, 'max_items', high=512) or 64)
    return _with_default(place, prop, entry.get('default'))


def _check_names(place, name, entry):
    if not isinstance(name, str) or not _NAME.match(name):
        raise _invalid(place, 'a name has a-z, 0-9 and _ only')
    if not isinstance(entry, dict):
        raise _invalid(place, 'expected a map')
    unknown = sorted(str(key) for key in entry if key not in _KEYS)
    if unknown:
        raise _invalid(place, 'unknown key %s' % unknown[0][:64])
    if entry.get('type') not in values.TYPES:
        raise _invalid(place, 'type must be one of %s'
                       % ', '.join(sorted(values.TYPES)))
    for key, pattern in (('handler', _HANDLER), ('define', _DEFINE)):
        text = entry.get(key)
        if text is not None and not (isinstance(text, str)
                                     and pattern.match(text)):
            raise _invalid(place, '%s %r is not a name' % (key, text))
    if ('handler' in entry) == ('define' in entry):
        raise _invalid(place, 'needs either handler or define')
    if entry['type'] in ('filter_rules', 'ipv4_list') and 'define' in entry:
        raise _invalid(place, '%s need a handler' % entry['type'])


def _count(place, entry, key, high=values.MAX_INTEGER):
    number = entry.get(key)
    if number is None:
        return None
    if isinstance(number, bool) or not isinstance(number, int) or not (
            0 <= number <= high):
        raise _invalid(place, '%s must be within 0 to %d' % (key, high))
    return number


def _enum_values(place, entry):
    listed = entry.get('values', [])
    if not isinstance(listed, list) or len(listed) > 256 or not all(
            isinstance(value, str) and values.ENUM_VALUE.match(value)
            for value in listed):
        raise _invalid(place, 'values must be at most 256 words of '
                              'A-Z a-z 0-9 _ . -')
    if (entry['type'] == 'enum') != bool(listed):
        raise _invalid(place, 'values belong to type enum, and it to them')
    return tuple(listed)


def _with_default(place, prop, default):
    if default is None:
        return prop
    try:
        default = values.check(prop, default)
    except exception.PropertyRefused as refused:
        raise _invalid(place, 'default: %s' % refused)
    return model.Property(**{**vars(prop), 'default': default})


def _check_targets(place, found):
    taken = set()
    for prop in found:
        target = prop.handler or prop.define
        if target in taken:
            raise _invalid(place, 'two properties go to %s' % target)
        taken.add(target)

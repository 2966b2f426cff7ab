# SPDX-License-Identifier: Apache-2.0
"""From the policy clickos.policies.Configuration to model.Property.

The VNFD is a tenant's file: everything in it is checked here.
"""

import dataclasses
import re

from tacker_clickos import exception
from tacker_clickos.vnfd import model
from tacker_clickos.vnfd import patterns
from tacker_clickos.vnfd import scalars
from tacker_clickos.vnfd import values

MAX_PROPERTIES = 64
MAX_FIELDS = 16
MAX_OUTPUTS = 64
#: Limits that the guests of a VDU share, as clickos-api takes.
MAX_SHARED = 8
#: Items of a list whose strings have a pattern, so that a check stays short.
MAX_PATTERNED = 512
_MAX_FORMAT = 200
_NAME = re.compile(r'[a-z][a-z0-9_]{0,63}\Z')
_HANDLER = re.compile(r'[A-Za-z0-9_@/]{1,128}\.[a-z0-9_]{1,64}\Z')
_DEFINE = re.compile(r'[A-Z][A-Z0-9_]{0,63}\Z')
_PLACEHOLDER = re.compile(r'\$([a-z][a-z0-9_]*)')
_FORMAT = re.compile(r'[ -~]*\Z')
_SEPARATOR = re.compile(r'[ ,;|]{1,3}\Z')
_TARGETS = frozenset(('handler', 'define'))
_KEYS = frozenset(('type', 'default', 'description'))
#: The keys that a type has besides these.
_KEYS_OF = {
    'integer': ('min', 'max', 'or_zero', 'shared'), 'port': ('min', 'max'),
    'rate': ('min', 'max', 'unit', 'shared'), 'enum': ('values',),
    'string': ('pattern', 'max_length'), 'port_range': ('split',),
    'ipv4_list': ('max_items',), 'filter_rules': ('max_items',),
    'inspection_rules': ('max_items',),
    'list': ('max_items', 'min_items', 'items', 'separator', 'unique'),
    'record': ('fields', 'format')}
#: What stands between the items of a type, unless it is a comma.
_SEPARATORS = {'inspection_rules': '\n'}
#: Types whose text has commas, or is secret.
_NO_DEFINE = ('filter_rules', 'inspection_rules', 'ipv4_list', 'list',
              'secret')
_NO_ITEMS = _NO_DEFINE


def properties(place, table, faults):
    """Return {name: model.Property} of the properties without a fault.

    :param place: where the table stands, for messages
    :param table: the policy's `properties`
    :param faults: list that gets the faults of single properties
    :raises: VnfdInvalid for a fault of the whole table
    """
    found = _each(place, 'property', table, MAX_PROPERTIES, _property, faults)
    _check_targets(place, found.values())
    return found


def outputs(place, table, faults):
    """Return {name: model.Output} of the outputs without a fault.

    :param table: the policy's `outputs`
    """
    return _each(place, 'output', table, MAX_OUTPUTS, _output, faults)


def _each(place, what, table, most, read, faults):
    if not isinstance(table, dict):
        raise _invalid(place, '%s must be a map'
                       % {'property': 'properties'}.get(what, what + 's'))
    if len(table) > most:
        raise _invalid(place, '%d %s, the limit is %d' % (
            len(table), {'property': 'properties'}.get(what, what + 's'),
            most))
    found = {}
    for name, entry in table.items():
        try:
            found[name] = read('%s: %s %s' % (place, what, name), name,
                               entry)
        except exception.VnfdInvalid as fault:
            faults.append(fault)
    return found


def _invalid(place, reason):
    return exception.VnfdInvalid(place=place, reason=reason)


def _property(place, name, entry):
    """Return a property of a guest, which has a target."""
    _check_name(place, name)
    if name == values.GUESTS:
        raise _invalid(place, 'the name is reserved for values of single '
                       'guests')
    _check_keys(place, entry, _TARGETS)
    for key, pattern in (('handler', _HANDLER), ('define', _DEFINE)):
        _check_target(place, entry, key, pattern)
    if ('handler' in entry) == ('define' in entry):
        raise _invalid(place, 'needs either handler or define')
    if entry['type'] in _NO_DEFINE and 'define' in entry:
        raise _invalid(place, '%s need a handler' % entry['type'])
    if _flag(place, entry, 'shared') and 'define' in entry:
        raise _invalid(place, 'shared: needs a handler, as quota.share')
    prop = dataclasses.replace(
        _typed(place, name, entry), handler=entry.get('handler'),
        define=entry.get('define'))
    return _with_default(place, prop, entry.get('default'))


def _check_name(place, name):
    if not isinstance(name, str) or not _NAME.match(name):
        raise _invalid(place, 'a name has a-z, 0-9 and _ only')


def _check_target(place, entry, key, pattern):
    text = entry.get(key)
    if text is not None and not (isinstance(text, str)
                                 and pattern.match(text)):
        raise _invalid(place, '%s %r is not a name' % (key, text))


def _check_keys(place, entry, more):
    """Refuse an entry with an unknown type, or with a key of another type."""
    if not isinstance(entry, dict):
        raise _invalid(place, 'expected a map')
    kind = entry.get('type')
    if not isinstance(kind, str) or kind not in values.TYPES:
        raise _invalid(place, 'type must be one of %s'
                       % ', '.join(sorted(values.TYPES)))
    known = _KEYS | more | set(_KEYS_OF.get(kind, ()))
    if kind == 'enum':
        known |= {'values'}
    unknown = sorted(str(key) for key in entry if key not in known)
    if unknown == ['values']:
        raise _invalid(place, 'values belong to type enum, and it to them')
    if unknown:
        raise _invalid(place, 'unknown key %s; type %s has %s' % (
            unknown[0][:64], kind, ', '.join(sorted(known - {'type'}))))


def _typed(place, name, entry):
    """Return the property without its target and default."""
    kind = entry['type']
    prop = model.Property(
        name=name, type=kind,
        minimum=_count(place, entry, 'min', high=scalars.MAX_RATE),
        maximum=_count(place, entry, 'max', high=scalars.MAX_RATE),
        or_zero=_flag(place, entry, 'or_zero'),
        max_items=_count(place, entry, 'max_items', values.MAX_ITEMS) or 64,
        min_items=_count(place, entry, 'min_items', values.MAX_ITEMS) or 0,
        max_length=(_count(place, entry, 'max_length', scalars.MAX_STRING)
                    or scalars.MAX_TEXT),
        values=_enum_values(place, entry), unit=_unit(place, entry),
        pattern=_pattern(place, entry), split=_flag(place, entry, 'split'),
        shared=_flag(place, entry, 'shared'),
        unique=_flag(place, entry, 'unique'),
        separator=_SEPARATORS.get(kind, ', '))
    if kind == 'list':
        return _list(place, prop, entry)
    return _record(place, prop, entry) if kind == 'record' else prop


def _list(place, prop, entry):
    items = _part('%s: items' % place, prop.name, entry.get('items'),
                  _NO_ITEMS)
    patterned = [field for field in (items, *(items.fields or {}).values())
                 if field.pattern]
    if patterned and prop.max_items > MAX_PATTERNED:
        raise _invalid(place, 'max_items %d: the limit is %d for strings '
                       'with a pattern' % (prop.max_items, MAX_PATTERNED))
    separator = entry.get('separator', prop.separator)
    if not isinstance(separator, str) or not _SEPARATOR.match(separator):
        raise _invalid(place, 'separator must be 1 to 3 of space , ; |')
    return dataclasses.replace(prop, items=items, separator=separator)


def _record(place, prop, entry):
    table = entry.get('fields')
    if not isinstance(table, dict) or not 1 <= len(table) <= MAX_FIELDS:
        raise _invalid(place, 'fields must be a map of 1 to %d fields'
                       % MAX_FIELDS)
    fields = {}
    for name, field in table.items():
        where = '%s: field %s' % (place, name)
        _check_name(where, name)
        fields[name] = _part(where, name, field, (*_NO_ITEMS, 'record'),
                             frozenset(('optional',)))
    return dataclasses.replace(
        prop, fields=fields, format=_format(place, entry, fields))


def _part(place, name, entry, excluded, more=frozenset()):
    """Return the property of an item or a field."""
    _check_keys(place, entry, more)
    if entry['type'] in excluded:
        raise _invalid(place, 'type %s cannot be a part of a value'
                       % entry['type'])
    prop = dataclasses.replace(
        _typed(place, name, entry), optional=_flag(place, entry, 'optional'))
    if prop.split or prop.shared:
        raise _invalid(place, '%s: only a whole property is' % (
            'split' if prop.split else 'shared'))
    return _with_default(place, prop, entry.get('default'))


def _format(place, entry, fields):
    text = entry.get('format', ' '.join('$' + name for name in fields))
    if not isinstance(text, str) or len(text) > _MAX_FORMAT \
            or not _FORMAT.match(text):
        raise _invalid(place, 'format must be at most %d printable '
                       'characters' % _MAX_FORMAT)
    named = _PLACEHOLDER.findall(text)
    if '$' in _PLACEHOLDER.sub('', text) or set(named) != set(fields):
        raise _invalid(place, 'format has to name each field once as $NAME, '
                       'and nothing else')
    return text


def _output(place, name, entry):
    _check_name(place, name)
    if not isinstance(entry, dict) or set(entry) - {'handler',
                                                    'description'}:
        raise _invalid(place, 'expected a map with handler and description')
    if not isinstance(entry.get('handler'), str):
        raise _invalid(place, 'handler is missing')
    _check_target(place, entry, 'handler', _HANDLER)
    return model.Output(name, entry['handler'],
                        str(entry.get('description') or '')[:256])


def _count(place, entry, key, high=scalars.MAX_INTEGER):
    number = entry.get(key)
    if number is None:
        return None
    if isinstance(number, bool) or not isinstance(number, int) or not (
            0 <= number <= high):
        raise _invalid(place, '%s must be within 0 to %d' % (key, high))
    return number


def _flag(place, entry, key):
    flag = entry.get(key, False)
    if not isinstance(flag, bool):
        raise _invalid(place, '%s: expected true or false' % key)
    return flag


def _unit(place, entry):
    if entry['type'] != 'rate':
        return None
    if entry.get('unit') not in scalars.UNITS:
        raise _invalid(place, 'unit must be one of %s'
                       % ', '.join(scalars.UNITS))
    return entry['unit']


def _pattern(place, entry):
    text = entry.get('pattern')
    if text is None:
        return None
    try:
        patterns.compiled(text)
    except (patterns.PatternError, TypeError) as error:
        raise _invalid(place, 'pattern: %s' % error)
    return text


def _enum_values(place, entry):
    listed = entry.get('values', [])
    if not isinstance(listed, list) or len(listed) > 256 or not all(
            isinstance(value, str) and scalars.ENUM_VALUE.match(value)
            for value in listed):
        raise _invalid(place, 'values must be at most 256 words of '
                              'A-Z a-z 0-9 _ . -')
    if (entry['type'] == 'enum') != bool(listed):
        raise _invalid(place, 'values belong to type enum, and it to them')
    return tuple(listed)


def _with_default(place, prop, default):
    if default is None:
        return prop
    if prop.type == 'secret':
        if default != '':
            raise _invalid(place, "default: a package holds no secret; '' "
                                  'stands for none')
        return dataclasses.replace(prop, default='')
    try:
        default = values.check(prop, default)
    except exception.PropertyRefused as refused:
        raise _invalid(place, 'default: %s' % refused)
    return dataclasses.replace(prop, default=default)


def _check_targets(place, found):
    taken = set()
    for prop in found:
        target = prop.handler or prop.define
        if target in taken:
            raise _invalid(place, 'two properties go to %s' % target)
        taken.add(target)
    count = sum(prop.shared for prop in found)
    if count > MAX_SHARED:
        raise _invalid(place, '%d shared properties, the limit is %d'
                       % (count, MAX_SHARED))

# SPDX-License-Identifier: Apache-2.0
"""The types of properties, and which values hold after a request.

A checked value is a single value of scalars.py, a list of them, a record
{field: value} or a list of records.
"""

import re

from tacker_clickos import exception
from tacker_clickos.vnfd import filter_rules
from tacker_clickos.vnfd import inspection_rules
from tacker_clickos.vnfd import scalars

#: The key of a request that gives values for single guests.
GUESTS = 'guests'
MAX_ITEMS = 10000
_GUEST = re.compile(r'[A-Za-z][A-Za-z0-9_-]{0,31}-[0-9]{1,2}\Z')
_MAX_GUESTS = 64


def _list(value, of, low, high):
    if not isinstance(value, list):
        raise scalars.Wrong('expected a list of %s, got %s'
                            % (of, type(value).__name__))
    if not low <= len(value) <= high:
        raise scalars.Wrong('%d %s, %d to %d are possible'
                            % (len(value), of, low, high))


def _ipv4_list(prop, value):
    _list(value, 'addresses', 0, prop.max_items)
    plain = [scalars.TYPES['ipv4'](prop, item) for item in value]
    found = _repeated(plain)
    if found is not None:
        raise scalars.Wrong('address %s is given twice' % plain[found])
    return plain


def _filter_rules(prop, value):
    return _rules(prop, value, 1, filter_rules.check)


def _inspection_rules(prop, value):
    return _rules(prop, value, 0, inspection_rules.check)


def _rules(prop, value, least, check_rule):
    _list(value, 'rules', least, prop.max_items)
    for index, rule in enumerate(value):
        wrong = check_rule(rule)
        if wrong:
            raise scalars.Wrong('rule %d: %s' % (index, wrong))
    return list(value)


def _items(prop, value):
    _list(value, 'items', prop.min_items, prop.max_items)
    plain = []
    for index, item in enumerate(value):
        try:
            plain.append(_plain(prop.items, item))
        except scalars.Wrong as wrong:
            raise scalars.Wrong('item %d: %s' % (index, wrong))
    if prop.unique and (found := _repeated(plain)) is not None:
        raise scalars.Wrong('item %d is given twice' % found)
    return plain


def _record(prop, value):
    if not isinstance(value, dict):
        raise scalars.Wrong('expected an object with %s, got %s'
                            % (', '.join(prop.fields),
                               type(value).__name__))
    for name in value:
        if name not in prop.fields:
            raise scalars.Wrong('no field %s; there are %s'
                                % (str(name)[:scalars.MAX_TEXT],
                                   ', '.join(prop.fields)))
    plain = {}
    for name, field in prop.fields.items():
        given = value.get(name)
        given = field.default if given is None else given
        if given is None and field.optional:
            continue
        if given is None:
            raise scalars.Wrong('field %s: a value is required' % name)
        try:
            plain[name] = _plain(field, given)
        except scalars.Wrong as wrong:
            raise scalars.Wrong('field %s: %s' % (name, wrong))
    return plain


def _repeated(plain):
    """Return the index of the first value that came before, or None."""
    seen = set()
    for index, value in enumerate(plain):
        key = tuple(value.items()) if isinstance(value, dict) else value
        if key in seen:
            return index
        seen.add(key)
    return None


TYPES = {
    **scalars.TYPES,
    'ipv4_list': _ipv4_list,
    'filter_rules': _filter_rules,
    'inspection_rules': _inspection_rules,
    'list': _items,
    'record': _record,
}


def _plain(prop, value):
    return TYPES[prop.type](prop, value)


def check(prop, value):
    """Return the value in its plain form.

    :param prop: the model.Property the value is for
    :param value: what the tenant sent, decoded from JSON or YAML
    :raises: PropertyRefused naming property, index, value and limit
    """
    try:
        return _plain(prop, value)
    except scalars.Wrong as wrong:
        raise exception.PropertyRefused(name=prop.name, reason=str(wrong))


def merge(properties, in_force, wanted):
    """Return all values after a request.

    :param properties: {name: model.Property} of the VNF
    :param in_force: values that hold until now, {} at instantiation
    :param wanted: the request: a value replaces, None takes the default;
        GUESTS holds such a request for each guest by its name
    :raises: PropertyRefused; nothing was changed then
    """
    _check_names(properties, wanted, 'clickos_properties')
    values = {name: _value(prop, in_force, wanted)
              for name, prop in properties.items()}
    guests = _guests(properties, in_force.get(GUESTS) or {},
                     wanted.get(GUESTS))
    return {**values, GUESTS: guests} if guests else values


def of_guest(vdu, values, name):
    """Return the values of one guest; it has its share of port ranges.

    :param vdu: model.Vdu
    :param values: what merge() returned
    :param name: such as VDU1-0
    :raises: PropertyRefused if a port range is too small
    """
    own = {**values, **(values.get(GUESTS) or {}).get(name, {})}
    own.pop(GUESTS, None)
    number = int(name.rpartition('-')[2])
    for prop in vdu.configuration.properties.values():
        if prop.split and vdu.most > 1:
            try:
                own[prop.name] = scalars.share(own[prop.name], number,
                                               vdu.most)
            except scalars.Wrong as wrong:
                raise exception.PropertyRefused(name=prop.name,
                                                reason=str(wrong))
    return own


def _check_names(properties, wanted, place):
    if not isinstance(wanted, dict):
        raise exception.PropertyRefused(
            name=place, reason='expected an object, got %s'
            % type(wanted).__name__)
    for name in wanted:
        if name not in properties and name != GUESTS:
            raise exception.PropertyRefused(
                name=str(name)[:scalars.MAX_TEXT],
                reason='this VNF has only: %s'
                       % (', '.join(sorted(properties)) or 'none'))


def _guests(properties, in_force, wanted):
    """Return {guest: {property: value}} after a request; None clears."""
    found = {name: {key: value for key, value in values.items()
                    if key in properties}
             for name, values in in_force.items()}
    if wanted is None:
        return {name: values for name, values in found.items() if values}
    if not isinstance(wanted, dict) or len(wanted) > _MAX_GUESTS:
        raise exception.PropertyRefused(
            name=GUESTS, reason='expected an object of at most %d guests'
            % _MAX_GUESTS)
    for name, request in wanted.items():
        if not isinstance(name, str) or not _GUEST.match(name):
            raise exception.PropertyRefused(
                name=GUESTS, reason='%r is not a guest such as VDU1-0'
                % str(name)[:scalars.MAX_TEXT])
        if request is None:
            found.pop(name, None)
            continue
        _check_names(properties, request, '%s: %s' % (GUESTS, name))
        found[name] = _guest(properties, found.get(name, {}), request)
    return {name: values for name, values in found.items() if values}


def _guest(properties, in_force, request):
    changed = {**in_force, **request}
    if GUESTS in changed:
        raise exception.PropertyRefused(
            name=GUESTS, reason='a guest has no guests')
    for name in changed:
        if properties[name].shared:
            raise exception.PropertyRefused(
                name=name, reason='all guests share it')
    return {name: check(properties[name], value)
            for name, value in changed.items() if value is not None}


def _value(prop, in_force, wanted):
    value = wanted.get(prop.name)
    if value is None and prop.name not in wanted:
        value = in_force.get(prop.name)
    if value is None:
        value = prop.default
    if value is None:
        raise exception.PropertyRefused(
            name=prop.name, reason='a value is required')
    return check(prop, value)

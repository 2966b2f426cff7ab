# SPDX-License-Identifier: Apache-2.0
"""The types of properties: each checks a value and gives its plain form.

A checked value is a str, an int, a bool or a list of str that holds no
character with a meaning in Click's language.
"""

import ipaddress
import re

from tacker_clickos import exception
from tacker_clickos.vnfd import filter_rules

_MAC = re.compile(r'[0-9a-f]{2}(:[0-9a-f]{2}){5}\Z')
ENUM_VALUE = re.compile(r'[A-Za-z0-9_.-]{1,64}\Z')
_MAX_TEXT = 64
MAX_INTEGER = 2 ** 32 - 1


class _Wrong(Exception):
    """Why a value is refused."""


def _text(value):
    if not isinstance(value, str):
        raise _Wrong('expected text, got %s' % type(value).__name__)
    if len(value) > _MAX_TEXT:
        raise _Wrong('%d characters, the limit is %d'
                     % (len(value), _MAX_TEXT))
    return value


def _ipv4(prop, value):
    try:
        return str(ipaddress.IPv4Address(_text(value)))
    except ValueError:
        raise _Wrong('expected an IPv4 address, got %r' % value)


def _ipv4_prefix(prop, value):
    try:
        if '/' not in _text(value):
            raise ValueError
        return str(ipaddress.IPv4Network(value))
    except ValueError:
        raise _Wrong('expected an IPv4 network such as 10.0.0.0/24, got %r'
                     % value)


def _ipv6(prop, value):
    try:
        if '%' in _text(value):
            raise ValueError
        return str(ipaddress.IPv6Address(value))
    except ValueError:
        raise _Wrong('expected an IPv6 address, got %r' % value)


def _ipv6_prefix(prop, value):
    try:
        if '/' not in _text(value) or '%' in value:
            raise ValueError
        return str(ipaddress.IPv6Network(value))
    except ValueError:
        raise _Wrong('expected an IPv6 network such as 2001:db8::/64, got %r'
                     % value)


def _mac(prop, value):
    if not _MAC.match(_text(value).lower()):
        raise _Wrong('expected a MAC address, got %r' % value)
    return value.lower()


def _integer(prop, value):
    if isinstance(value, bool) or not isinstance(value, int):
        raise _Wrong('expected a number, got %r' % str(value)[:_MAX_TEXT])
    low = 0 if prop.minimum is None else prop.minimum
    high = MAX_INTEGER if prop.maximum is None else prop.maximum
    if not low <= value <= high:
        raise _Wrong('%d is not within %d to %d' % (value, low, high))
    return value


def _port(prop, value):
    if _integer(prop, value) > 65535:
        raise _Wrong('%d is not within 0 to 65535' % value)
    return value


def _boolean(prop, value):
    if not isinstance(value, bool):
        raise _Wrong('expected true or false, got %r'
                     % str(value)[:_MAX_TEXT])
    return value


def _enum(prop, value):
    if _text(value) not in prop.values:
        raise _Wrong('expected one of %s, got %r'
                     % (', '.join(prop.values), value))
    return value


def _list(value, of, low, high):
    if not isinstance(value, list):
        raise _Wrong('expected a list of %s, got %s'
                     % (of, type(value).__name__))
    if not low <= len(value) <= high:
        raise _Wrong('%d %s, %d to %d are possible'
                     % (len(value), of, low, high))


def _ipv4_list(prop, value):
    _list(value, 'addresses', 0, prop.max_items)
    plain = [_ipv4(prop, item) for item in value]
    for index, address in enumerate(plain):
        if address in plain[:index]:
            raise _Wrong('address %s is given twice' % address)
    return plain


def _filter_rules(prop, value):
    _list(value, 'rules', 1, prop.max_items)
    for index, rule in enumerate(value):
        wrong = filter_rules.check(rule)
        if wrong:
            raise _Wrong('rule %d: %s' % (index, wrong))
    return list(value)


TYPES = {
    'ipv4': _ipv4,
    'ipv4_list': _ipv4_list,
    'ipv4_prefix': _ipv4_prefix,
    'ipv6': _ipv6,
    'ipv6_prefix': _ipv6_prefix,
    'mac': _mac,
    'port': _port,
    'integer': _integer,
    'boolean': _boolean,
    'enum': _enum,
    'filter_rules': _filter_rules,
}


def check(prop, value):
    """Return the value in its plain form.

    :param prop: the model.Property the value is for
    :param value: what the tenant sent, decoded from JSON or YAML
    :raises: PropertyRefused naming property, index, value and limit
    """
    try:
        return TYPES[prop.type](prop, value)
    except _Wrong as wrong:
        raise exception.PropertyRefused(name=prop.name, reason=str(wrong))


def merge(properties, in_force, wanted):
    """Return all values after a request.

    :param properties: {name: model.Property} of the VNF
    :param in_force: values that hold until now, {} at instantiation
    :param wanted: the request: a value replaces, None takes the default
    :raises: PropertyRefused; nothing was changed then
    """
    if not isinstance(wanted, dict):
        raise exception.PropertyRefused(
            name='clickos_properties',
            reason='expected an object, got %s' % type(wanted).__name__)
    for name in wanted:
        if name not in properties:
            raise exception.PropertyRefused(
                name=str(name)[:_MAX_TEXT],
                reason='this VNF has only: %s'
                       % (', '.join(sorted(properties)) or 'none'))
    return {name: _value(prop, in_force, wanted)
            for name, prop in properties.items()}


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

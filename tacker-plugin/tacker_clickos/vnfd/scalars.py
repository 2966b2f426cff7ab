# SPDX-License-Identifier: Apache-2.0
"""The types of single values: each checks one and gives its plain form.

A plain form is a str, an int or a bool. It holds no character with a meaning
in Click's language.
"""

import decimal
import ipaddress
import re

from tacker_clickos.vnfd import patterns

_MAC = re.compile(r'[0-9a-f]{2}(:[0-9a-f]{2}){5}\Z')
ENUM_VALUE = re.compile(r'[A-Za-z0-9_.-]{1,64}\Z')
MAX_TEXT = 64
MAX_STRING = 255
MAX_INTEGER = 2 ** 32 - 1
MAX_RATE = 10 ** 15
#: No quotes, no separators, no variables, no brackets.
_STRING = re.compile(r'[A-Za-z0-9 _.:/@+=%~*!?&|<>^-]*\Z')
_SECRET = re.compile(r'clickos-secret:[0-9a-f]{8}(-[0-9a-f]{4}){3}-'
                     r'[0-9a-f]{12}\Z')
_RANGE = re.compile(r'(\d{1,5})-(\d{1,5})\Z', re.ASCII)
_RATE = re.compile(r'(\d{1,12}(?:\.\d{1,6})?) ?'
                   r'(k|K|M|G|T|Ki|Mi|Gi|Ti)?(bps|Bps|pps)\Z', re.ASCII)
_SCALES = {'k': 10 ** 3, 'K': 10 ** 3, 'M': 10 ** 6, 'G': 10 ** 9,
           'T': 10 ** 12, 'Ki': 2 ** 10, 'Mi': 2 ** 20, 'Gi': 2 ** 30,
           'Ti': 2 ** 40, None: 1}
#: What a property's `unit` may be; a byte has 8 bits.
_BITS = {'bps': 1, 'Bps': 8}
UNITS = ('bps', 'Bps', 'pps')


class Wrong(Exception):
    """Why a value is refused."""


def text(value, most=MAX_TEXT):
    """Return a bounded text.

    :raises: Wrong
    """
    if not isinstance(value, str):
        raise Wrong('expected text, got %s' % type(value).__name__)
    if len(value) > most:
        raise Wrong('%d characters, the limit is %d' % (len(value), most))
    return value


def _ipv4(prop, value):
    try:
        return str(ipaddress.IPv4Address(text(value)))
    except ValueError:
        raise Wrong('expected an IPv4 address, got %r' % value)


def _ipv4_prefix(prop, value):
    try:
        if '/' not in text(value):
            raise ValueError
        return str(ipaddress.IPv4Network(value))
    except ValueError:
        raise Wrong('expected an IPv4 network such as 10.0.0.0/24, got %r'
                    % value)


def _ipv6(prop, value):
    try:
        if '%' in text(value):
            raise ValueError
        return str(ipaddress.IPv6Address(value))
    except ValueError:
        raise Wrong('expected an IPv6 address, got %r' % value)


def _ip(prop, value):
    kind = _ipv6 if ':' in text(value) else _ipv4
    return kind(prop, value)


def _ipv6_prefix(prop, value):
    try:
        if '/' not in text(value) or '%' in value:
            raise ValueError
        return str(ipaddress.IPv6Network(value))
    except ValueError:
        raise Wrong('expected an IPv6 network such as 2001:db8::/64, got %r'
                    % value)


def _mac(prop, value):
    if not _MAC.match(text(value).lower()):
        raise Wrong('expected a MAC address, got %r' % value)
    return value.lower()


def _integer(prop, value):
    if isinstance(value, bool) or not isinstance(value, int):
        raise Wrong('expected a number, got %r' % str(value)[:MAX_TEXT])
    return _within(prop, value, MAX_INTEGER)


def _within(prop, value, most):
    low = 0 if prop.minimum is None else prop.minimum
    high = most if prop.maximum is None else prop.maximum
    if prop.or_zero and value == 0:
        return value
    if not low <= value <= high:
        raise Wrong('%d is not within %d to %d%s' % (
            value, low, high, ', nor 0' if prop.or_zero else ''))
    return value


def _port(prop, value):
    if _integer(prop, value) > 65535:
        raise Wrong('%d is not within 0 to 65535' % value)
    return value


def _port_range(prop, value):
    found = _RANGE.match(text(value))
    low, high = map(int, found.groups()) if found else (0, 0)
    if not 1 <= low <= high <= 65535:
        raise Wrong('expected ports such as 1024-65535, got %r' % value)
    return '%d-%d' % (low, high)


def share(value, number, count):
    """Return the part of a port range that belongs to one of count guests.

    :raises: Wrong if the range has fewer ports than guests
    """
    low, high = map(int, value.split('-'))
    size = (high - low + 1) // count
    if not size:
        raise Wrong('%s has fewer ports than the VDU may have guests, %d'
                    % (value, count))
    first = low + number * size
    last = high if number == count - 1 else first + size - 1
    return '%d-%d' % (first, last)


def _rate(prop, value):
    """Return a rate as a whole number of the property's unit."""
    if isinstance(value, int) and not isinstance(value, bool):
        return _within(prop, value, MAX_RATE)
    found = _RATE.match(text(value))
    if not found or (found[3] == 'pps') != (prop.unit == 'pps'):
        raise Wrong('expected a rate such as %s, got %r'
                    % ('500 kpps' if prop.unit == 'pps' else '10 Mbps or '
                       '1.25 MBps', value))
    rate = decimal.Decimal(found[1]) * _SCALES[found[2]]
    if prop.unit != 'pps':
        rate = rate * _BITS[found[3]] / _BITS[prop.unit]
    return _within(prop, int(rate), MAX_RATE)


def _boolean(prop, value):
    if not isinstance(value, bool):
        raise Wrong('expected true or false, got %r' % str(value)[:MAX_TEXT])
    return value


def _enum(prop, value):
    if text(value) not in prop.values:
        raise Wrong('expected one of %s, got %r'
                    % (', '.join(prop.values), value))
    return value


def _string(prop, value):
    text(value, prop.max_length)
    if not _STRING.match(value):
        raise Wrong('expected letters, digits, spaces and '
                    '_ . : / @ + = %% ~ * ! ? & | < > ^ -, got %s'
                    % ascii(value[:MAX_TEXT]))
    if prop.pattern and not patterns.matches(
            patterns.compiled(prop.pattern), value):
        raise Wrong('%r does not match %s' % (value[:MAX_TEXT],
                                              prop.pattern))
    return value


def _secret(prop, value):
    """The text of a secret never gets here; no message repeats a value."""
    if prop.default == value == '':
        return value
    if not isinstance(value, str) or not _SECRET.match(value):
        raise Wrong('expected a reference such as clickos-secret:UUID')
    return value


TYPES = {
    'ipv4': _ipv4,
    'ipv4_prefix': _ipv4_prefix,
    'ipv6': _ipv6,
    'ip': _ip,
    'ipv6_prefix': _ipv6_prefix,
    'mac': _mac,
    'port': _port,
    'port_range': _port_range,
    'integer': _integer,
    'rate': _rate,
    'boolean': _boolean,
    'enum': _enum,
    'string': _string,
    'secret': _secret,
}

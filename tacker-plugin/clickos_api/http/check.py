# SPDX-License-Identifier: Apache-2.0
"""Requests, checked by shapes: everything in them is hostile until here."""

import contextlib
import itertools
import json
import math
import re

from clickos_client import contract
from clickos_client import document
from clickos_client import limits
import fastjsonschema

from clickos_api import errors
from clickos_api.http import shapes

_ID = re.compile(r'[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}')
_CONTROL = re.compile(r'[\x00-\x1f\x7f-\x9f]')
#: Strings and signs of a body: six for a write, of which there are
#: limits.WRITES, and as many handlers whose writes stay.
MAX_TOKENS = 16384
_TOKEN = re.compile(rb'[\[{,:]|"(?:[^"\\]++|\\.)*+"?', re.DOTALL)


def _plain(text):
    """Return why a text is not plain; '' if it is."""
    if '\0' in text:
        return 'holds a NUL character'
    try:
        text.encode()
    except UnicodeEncodeError:
        return 'holds half a surrogate pair'
    return ''


def _parameter(text):
    """Return why a text is no parameter of a read; '' if it is one."""
    fault = _plain(text)
    if not fault and _CONTROL.search(text):
        fault = f'expected no control characters, got {shown(text)}'
    return fault or too_long(text, limits.PARAMETER_BYTES)


def _uuid(text):
    return '' if _ID.fullmatch(text.lower()) else (
        f'expected a UUID, got {shown(text)}')


def too_long(text, limit_bytes):
    """Return why a text is too long; '' if it is not."""
    size = len(text.encode())
    return '' if size <= limit_bytes else (
        f'has {size} bytes, the limit is {limit_bytes}')


#: What a pattern cannot say: {format: returns the fault of a text}.
_FAULTS = {'plain': _plain, 'parameter': _parameter, 'uuid': _uuid}


class Shape:
    """A shape that checks values, and says where they do not fit.

    :param schema: of the module shapes
    """

    def __init__(self, schema):
        self._check = fastjsonschema.compile(
            contract.draft7(schema), formats={
                name: lambda text, fault=fault: not fault(text)
                for name, fault in _FAULTS.items()}, use_default=False)

    def check(self, value, place='body'):
        """Return a value that fits.

        :raises errors.BadRequest: with the place of the first fault
        """
        try:
            return self._check(value)
        except fastjsonschema.JsonSchemaValueException as exc:
            raise errors.BadRequest(
                f'{_place(exc.path[1:]) or place}: {_fault(exc)}')

    def body(self, raw):
        """Return the value of a JSON body that fits."""
        return self.check(_json(raw))


def _place(path):
    """Return the place of a path: writes[1][0]."""
    place = ''
    for key in path:
        place += f'[{key}]' if key.isdecimal() else f'.{key}'
    return place.removeprefix('.')


def _fault(exc):
    """Return what is wrong at a place, with the value and the limit."""
    shape, value = exc.definition, exc.value
    if isinstance(value, str) and 'format' in shape:
        fault = _FAULTS[shape['format']](value)
        if fault:
            return fault
    if exc.rule == 'required':
        missing = next(key for key in exc.rule_definition if key not in value)
        return f'"{missing}" is missing'
    if exc.rule == 'additionalProperties':
        unknown = min(set(value) - set(shape['properties']))
        names = shape['description'].removeprefix('an object with ')
        return f'unknown key {shown(unknown)}; expected only {names}'
    if exc.rule == 'maxItems' and shape['minItems'] != shape['maxItems']:
        return f'has {len(value)} entries, the limit is {shape["maxItems"]}'
    if exc.rule == 'maxLength':
        return f'longer than {shape["maxLength"]} characters'
    if exc.rule == 'minLength' and shape['minLength'] == 1:
        return f'is empty; expected {shape["description"]}'
    got = '' if shape.get('writeOnly') else f', got {shown(value)}'
    return f'expected {shape["description"]}{got}'


def _json(raw):
    # Python makes a list of two bytes in 70 bytes of memory.
    tokens = itertools.islice(_TOKEN.finditer(raw), MAX_TOKENS, None)
    if next(tokens, None):
        raise errors.BadRequest(f'body: more than {MAX_TOKENS} strings and'
                                ' signs of JSON')
    try:
        return json.loads(raw, parse_constant=_no_constant,
                          parse_float=_float)
    except json.JSONDecodeError as exc:
        raise errors.BadRequest(f'body: not JSON: line {exc.lineno} column'
                                f' {exc.colno}: {exc.msg}')
    except UnicodeDecodeError as exc:
        raise errors.BadRequest(f'body: not UTF-8 at byte {exc.start}')
    except (RecursionError, ValueError):   # too deep; a number too long
        raise errors.BadRequest('body: not JSON this service takes: nested'
                                ' too deep or a number too long')


def _no_constant(name):
    raise ValueError(name)


def _float(text):
    """Return 1.0 and 1e3 as the whole numbers that they are to a schema."""
    number = float(text)
    return int(number) if number.is_integer() else number


def shown(thing):
    """Return a short printable form of something the caller sent."""
    text = ascii(thing)
    return text if len(text) <= 60 else text[:57] + '...'


def of_query(name, text):
    """Return the parameter of a query; numbers are texts there."""
    shape = _QUERY[name]
    if name == 'max_age':
        with contextlib.suppress(ValueError):   # the shape refuses a text
            seconds = float(text)
            text = text if math.isnan(seconds) else seconds
    return shape.check(text, name)


def identifier(text, what):
    """Return an id in its one spelling.

    :param what: whose id it is, for the message
    """
    return _UUID.check(text, f'{what} id').lower()


def writes_body(body, options):
    """Return a body whose writes keep to the operator's limits."""
    count, limit = len(body['writes']), options.max_writes
    if count > limit:
        raise errors.BadRequest(f'writes: has {count} entries, the limit is'
                                f' {limit}')
    _sizes(body['writes'], options.max_value_bytes)
    return body


def value_body(body, options):
    """Return a body whose value keeps to the operator's limit."""
    _size(body['value'], options.max_value_bytes, 'value')
    return body


def secret(body, _options):
    """Return a body whose value is no longer than a secret."""
    _size(body['value'], shapes.SECRET_BYTES, 'value')
    return body


def _sizes(writes, limit_bytes):
    for index, (_name, value) in enumerate(writes):
        _size(value, limit_bytes, f'writes[{index}][1]')


def _size(text, limit_bytes, place):
    fault = too_long(text, limit_bytes)
    if fault:
        raise errors.BadRequest(f'{place}: {fault}')


def configuration(body, _options):
    """Return a body with a document.Configuration, and its writes."""
    _sizes(body.setdefault('writes', []), limits.VALUES_BYTES)
    try:
        found = document.replacement(**{
            key: body[key] for key in ('config', 'config_name')
            if key in body})
    except document.DocumentError as exc:
        raise errors.BadRequest(str(exc))
    return {**body, 'configuration': found}


def hops(body, _options):
    """Return a body with hops as (name, server, group), each another one."""
    rows = [(hop['name'], hop['server'].lower(), hop['group'].lower())
            for hop in body['hops']]
    for index, key in enumerate(('name', 'server', 'group')):
        if len({row[index] for row in rows}) < len(rows):
            raise errors.BadRequest(f'hops: a {key} comes twice')
    return {**body, 'hops': rows}


def shared_limits(body, _options):
    """Return a body whose limits and servers are each another one."""
    for key in ('name', 'handler'):
        if len({each[key] for each in body['limits']}) < len(body['limits']):
            raise errors.BadRequest(f'limits: a {key} comes twice')
    return {**body, 'servers': list(dict.fromkeys(
        each.lower() for each in body['servers']))}


_UUID = Shape(shapes.UUID)
HANDLER = Shape(shapes.HANDLER)
NUMBER = Shape(shapes.NUMBER)
_QUERY = {name: Shape(shape)
          for name, (place, shape, _) in shapes.PARAMETERS.items()
          if place == 'query'}

# SPDX-License-Identifier: Apache-2.0
"""Requests, checked: everything in them is hostile until here."""

import dataclasses
import itertools
import json
import re

from clickos_client import document
from clickos_client import flows
from clickos_client import limits
from clickos_client import plain_json
from clickos_client import port_roles

from clickos_api import errors
from clickos_api import states

ID = re.compile(r'[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}')
#: [element.]handler; a compound element's parts are joined by '/'.
HANDLER = re.compile(r'([A-Za-z0-9_@/]+\.)?[A-Za-z0-9_]+')
VNFC_LENGTH = 255
PROJECT_LENGTH = 64
MAX_NUMBER = 2 ** 53
SECRET_NAME = re.compile(r'[A-Za-z0-9_.-]{1,64}')
SECRET_BYTES = 4096
#: Strings and signs of a body: six for a write, of which there are
#: limits.WRITES, and as many handlers whose writes stay.
MAX_TOKENS = 16384
_TOKEN = re.compile(rb'[\[{,:]|"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
_CONTROL = re.compile(r'[\x00-\x1f\x7f-\x9f]')
#: A hop of a fused chain: a component of click-combine.
HOP = re.compile(r'[A-Za-z_][A-Za-z0-9_]{0,31}')


def uuid(text, what):
    """Return the id in its one spelling.

    :param what: whose id it is, for the message
    """
    if not ID.fullmatch(text.lower()):
        raise errors.BadRequest(f'{what} id: expected a UUID, got'
                                f' {_shown(text)}')
    return text.lower()


def vnfc(text):
    """Return the name of a VNFC as it is, or None."""
    if text is not None and len(text) > VNFC_LENGTH:
        raise errors.BadRequest(f'vnfc: longer than {VNFC_LENGTH} characters')
    return text


def handler(name, place='handler'):
    """Return a handler's name as it is."""
    if not isinstance(name, str):
        raise errors.BadRequest(f'{place}: expected a text, got'
                                f' {_shown(name)}')
    if len(name) > limits.HANDLER_NAME:
        raise errors.BadRequest(f'{place}: longer than {limits.HANDLER_NAME}'
                                ' characters')
    if not HANDLER.fullmatch(name):
        raise errors.BadRequest(f'{place}: expected ELEMENT.HANDLER, got'
                                f' {_shown(name)}')
    return name


def parameter(text, place='parameter'):
    """Return the parameter of a read as it is; '' if it has none."""
    text = value(text, limits.PARAMETER_BYTES, place)
    if _CONTROL.search(text):
        raise errors.BadRequest(f'{place}: expected no control characters,'
                                f' got {_shown(text)}')
    return text


def value(text, limit_bytes, place='value'):
    """Return a handler's value as it is."""
    if not isinstance(text, str):
        raise errors.BadRequest(f'{place}: expected a text, got'
                                f' {_shown(text)}')
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise errors.BadRequest(f'{place}: holds half a surrogate pair')
    if '\0' in text:
        raise errors.BadRequest(f'{place}: holds a NUL character')
    if size > limit_bytes:
        raise errors.BadRequest(f'{place}: has {size} bytes, the limit is'
                                f' {limit_bytes}')
    return text


def value_body(raw, limit_bytes):
    """Return the value in the body {"value": ...}."""
    return value(_only(raw, 'value'), limit_bytes)


def max_age(text):
    """Return the seconds that a value may be old, None for a new one.

    :param text: of a query, or a number of a body
    """
    if text is None:
        return None
    try:
        seconds = float(text) if not isinstance(text, bool) else -1
    except (TypeError, ValueError, OverflowError):
        seconds = -1
    if not 0 <= seconds <= limits.MAX_AGE_S:
        raise errors.BadRequest('max_age: expected seconds from 0 to'
                                f' {limits.MAX_AGE_S}, got {_shown(text)}')
    return seconds


def reads_body(raw):
    """Return a states.Read each and max_age of a read of several."""
    body = _object(raw, ('names',), ('max_age',))
    names = body['names']
    if not isinstance(names, list) or not 1 <= len(names) <= limits.READS:
        raise errors.BadRequest('names: expected a list of 1 to'
                                f' {limits.READS} handlers')
    return ([_read(each, f'names[{i}]') for i, each in enumerate(names)],
            max_age(body.get('max_age')))


def _read(each, place):
    """Return the states.Read of NAME or [NAME, PARAMETER]."""
    if not isinstance(each, list):
        return states.Read(handler(each, place))
    if len(each) != 2:
        raise errors.BadRequest(f'{place}: expected HANDLER or [HANDLER,'
                                f' PARAMETER], got {_shown(each)}')
    return states.Read(handler(each[0], f'{place}[0]'),
                       parameter(each[1], f'{place}[1]'))


def writes_body(raw, limit_bytes, max_writes):
    """Return [[name, value], ...] of the body {"writes": ...}."""
    writes = _only(raw, 'writes')
    if not isinstance(writes, list) or not writes:
        raise errors.BadRequest('writes: expected a list of at least one'
                                ' [HANDLER, VALUE]')
    if len(writes) > max_writes:
        raise errors.BadRequest(f'writes: has {len(writes)} entries, the'
                                f' limit is {max_writes}')
    return [_write(each, limit_bytes, f'writes[{i}]')
            for i, each in enumerate(writes)]


def configuration_body(raw):
    """Return the document.Configuration of a body."""
    body = _object(raw, ('config',), ('config_name',))
    try:
        return document.replacement(**body)
    except document.DocumentError as exc:
        raise errors.BadRequest(str(exc))


def project(text):
    """Return the id of a project as it is."""
    if not 1 <= len(text) <= PROJECT_LENGTH:
        raise errors.BadRequest('project_id: expected 1 to'
                                f' {PROJECT_LENGTH} characters')
    return text


def state_body(raw):
    """Return the document.Configuration of a state to be made."""
    return _state(_object(raw, ('config',), ('config_name', 'writes')))


def rebase_body(raw):
    """Return the document.Configuration that a state is to get, and the
    handlers whose writes it keeps, None for all.
    """
    body = _object(raw, ('config',), ('config_name', 'writes', 'keep'))
    keep = _names(body.pop('keep', None))
    return _state(body), keep


def _state(body):
    writes = body.pop('writes', [])
    if not isinstance(writes, list) or len(writes) > limits.WRITES:
        raise errors.BadRequest('writes: expected a list of at most'
                                f' {limits.WRITES} [HANDLER, VALUE]')
    pairs = [_write(each, limits.VALUES_BYTES, f'writes[{i}]')
             for i, each in enumerate(writes)]
    try:
        found = document.replacement(**body)
    except document.DocumentError as exc:
        raise errors.BadRequest(str(exc))
    return dataclasses.replace(found, writes=tuple(pairs))


def _names(keep):
    if keep is None:
        return None
    if not isinstance(keep, list) or len(keep) > limits.WRITES:
        raise errors.BadRequest('keep: expected a list of at most'
                                f' {limits.WRITES} handlers')
    return {handler(name, f'keep[{i}]') for i, name in enumerate(keep)}


def secret_body(raw):
    """Return name and value of a secret to be made."""
    body = _object(raw, ('name', 'value'))
    name = body['name']
    if not isinstance(name, str) or not SECRET_NAME.fullmatch(name):
        raise errors.BadRequest('name: expected 1 to 64 letters, digits, ".",'
                                ' "_" or "-"')
    try:
        found = value(body['value'], SECRET_BYTES)
    except errors.BadRequest as exc:
        # A message has the beginning of a value that is no text.
        raise exc if isinstance(body['value'], str) else errors.BadRequest(
            'value: expected a text')
    if not found:
        raise errors.BadRequest('value: is empty')
    return name, found


def flows_body(raw):
    """Return the ids of the servers that get flows."""
    found = _only(raw, 'to')
    if not isinstance(found, list) or not 1 <= len(found) <= flows.MAX_TAKERS:
        raise errors.BadRequest('to: expected a list of 1 to'
                                f' {flows.MAX_TAKERS} servers')
    if not all(isinstance(each, str) for each in found):
        raise errors.BadRequest('to: expected texts')
    return list(dict.fromkeys(uuid(each, 'server') for each in found))


def roles_body(raw):
    """Return the roles of a port, each once, in their order."""
    found = _only(raw, 'roles')
    if not isinstance(found, list) or not all(
            isinstance(each, str) and each in port_roles.ROLES
            for each in found):
        raise errors.BadRequest('roles: expected a list of %s'
                                % ', '.join(port_roles.ROLES))
    return [role for role in port_roles.ROLES if role in found]


def fusion_body(raw):
    """Return the fused server and [(name, server, group)] of the hops."""
    body = _object(raw, ('server', 'hops'))
    hops = body['hops']
    if not isinstance(hops, list) or not 2 <= len(hops) <= limits.CHAIN_HOPS:
        raise errors.BadRequest(
            f'hops: expected a list of 2 to {limits.CHAIN_HOPS}')
    found = [_hop(each, f'hops[{index}]') for index, each in enumerate(hops)]
    for index, key in enumerate(('name', 'server', 'group')):
        if len({hop[index] for hop in found}) < len(found):
            raise errors.BadRequest(f'hops: a {key} comes twice')
    return _id(body['server'], 'server'), found


def _hop(each, place):
    if not isinstance(each, dict) or set(each) != {'name', 'server', 'group'}:
        raise errors.BadRequest(f'{place}: expected an object with "name",'
                                f' "server" and "group", got {_shown(each)}')
    if not isinstance(each['name'], str) or not HOP.fullmatch(each['name']):
        raise errors.BadRequest(f'{place}: name: expected 1 to 32 letters,'
                                f' digits and _, got {_shown(each["name"])}')
    return (each['name'], _id(each['server'], f'{place}: server'),
            _id(each['group'], f'{place}: group'))


def _id(text, place):
    if not isinstance(text, str):
        raise errors.BadRequest(f'{place}: expected a UUID, got'
                                f' {_shown(text)}')
    return uuid(text, place)


def revision_body(raw):
    """Return the revision of a body."""
    return number(_only(raw, 'revision'), 'revision')


def start_body(raw):
    """Return the report of a start as a dict."""
    body = _object(raw, ('number', 'revision', 'incarnation', 'server_id',
                         'project_id'))
    for key in ('number', 'revision'):
        body[key] = number(body[key], key)
    for key in ('incarnation', 'server_id', 'project_id'):
        if not isinstance(body[key], str):
            raise errors.BadRequest(f'{key}: expected a text, got'
                                    f' {_shown(body[key])}')
    for key in ('incarnation', 'server_id'):
        body[key] = uuid(body[key], key)
    project(body['project_id'])
    return body


def number(value, place):
    """Return a whole number that the database and JSON hold exactly."""
    if type(value) is float and value.is_integer():
        value = int(value)   # as JSON Schema has it
    if type(value) is not int or not 0 <= value <= MAX_NUMBER:
        raise errors.BadRequest(f'{place}: expected a number of 0 to'
                                f' {MAX_NUMBER}, got {_shown(value)}')
    return value


def _write(each, limit_bytes, place):
    if not isinstance(each, list) or len(each) != 2:
        raise errors.BadRequest(f'{place}: expected [HANDLER, VALUE], got'
                                f' {_shown(each)}')
    return [handler(each[0], f'{place}[0]'),
            value(each[1], limit_bytes, f'{place}[1]')]


def _only(raw, key):
    """Return the value of the one key a JSON body is to have."""
    return _object(raw, (key,))[key]


def _object(raw, required, optional=()):
    """Return the object of a JSON body that has these keys only."""
    body = _json(raw)
    names = ', '.join(f'"{key}"' for key in (*required, *optional))
    if not isinstance(body, dict):
        raise errors.BadRequest(f'body: expected an object with {names}, got'
                                f' {_shown(body)}')
    unknown = sorted(set(body) - {*required, *optional})
    if unknown:
        raise errors.BadRequest(f'body: unknown key {_shown(unknown[0])};'
                                f' expected only {names}')
    for key in required:
        if key not in body:
            raise errors.BadRequest(f'body: "{key}" is missing')
    return body


def _json(raw):
    # Python makes a list of two bytes in 70 bytes of memory.
    tokens = itertools.islice(_TOKEN.finditer(raw), MAX_TOKENS, None)
    if next(tokens, None):
        raise errors.BadRequest(f'body: more than {MAX_TOKENS} strings and'
                                ' signs of JSON')
    try:
        return plain_json.loads(raw)
    except json.JSONDecodeError as exc:
        raise errors.BadRequest(f'body: not JSON: line {exc.lineno} column'
                                f' {exc.colno}: {exc.msg}')
    except UnicodeDecodeError as exc:
        raise errors.BadRequest(f'body: not UTF-8 at byte {exc.start}')
    except ValueError:   # too deep; a number too long
        raise errors.BadRequest('body: not JSON this service takes: nested'
                                ' too deep or a number too long')


def _shown(thing):
    """Return a short printable form of something the caller sent."""
    text = ascii(thing)
    return text if len(text) <= 60 else text[:57] + '...'

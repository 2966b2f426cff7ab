# SPDX-License-Identifier: Apache-2.0
"""Values of properties as options give them: --property NAME=VALUE."""

import json

from osc_lib import exceptions

from clickos_osc import files
from clickos_osc import formatting

HELP = ('Value of a property. <name>=@<file> takes a file, with an item a'
        ' line for a list. <name>=@@<text> is a text that begins with @.'
        ' A list may be given as JSON, or with commas; may be'
        ' repeated')
_WHOLE = ('integer', 'port')
_LISTS = ('list', 'filter_rules', 'inspection_rules', 'ipv4_list')
#: Lists whose items have commas: an item is a line.
_LINES = ('inspection_rules',)
_JSON = ('record',)
_BOOLEANS = {'true': True, 'false': False}


def parse(offered, texts):
    """Return {property: value} in the types of a descriptor.

    :param offered: the properties of descriptor_reader.read()
    :param texts: NAME=VALUE of each option
    :raises CommandError: that names the property
    """
    known = {each['name']: each for each in offered}
    found = {}
    for text in texts:
        name, separator, value = text.partition('=')
        if not separator or name not in known or name in found:
            raise _bad(name, 'expected NAME=VALUE, each property once; the'
                       f' properties are: {_names(known)}')
        found[name] = _value(known[name], _content(value))
    return found


def require_complete(offered, found):
    """Refuse values that leave a property without any."""
    for each in offered:
        if each['default'] is None and each['name'] not in found \
                and each['type'] not in (*_LISTS, 'boolean', 'None'):
            raise _bad(each['name'], f'needs a value, {each["type"]}:'
                       f' {each["description"]}')


def _content(value):
    if value.startswith('@@'):
        return value[1:]
    return files.text(value[1:]) if value.startswith('@') else value


def _value(offered, text):
    kind = offered['type']
    if kind in _LISTS:
        return _items(offered, text)
    text = text.removesuffix('\n')
    return _single(offered['name'], kind, text)


def _single(name, kind, text):
    if kind in _WHOLE:
        return _whole(name, text.strip())
    if kind == 'boolean':
        if text.strip().lower() not in _BOOLEANS:
            raise _bad(name, f'expected true or false, got {text[:64]}')
        return _BOOLEANS[text.strip().lower()]
    return _json(name, text) if kind in _JSON else text


def _items(offered, text):
    """Return the items of a list: JSON, lines, or parts between commas."""
    name = offered['name']
    if text.lstrip().startswith('['):
        return _json(name, text)
    if offered['type'] in _LINES:
        return [line.strip() for line in text.splitlines() if line.strip()]
    items = offered['limits'].get('items')
    kind = items.get('type') if isinstance(items, dict) else 'string'
    if kind in _JSON:
        raise _bad(name, 'a list of records: expected JSON such as [{...}]')
    parts = text.splitlines() if '\n' in text else text.split(',')
    return [_single(name, kind, part.strip().removesuffix(','))
            for part in parts if part.strip()]


def _whole(name, text):
    if not text.isascii() or not text.removeprefix('-').isdigit() \
            or len(text) > 20:
        raise _bad(name, f'expected a whole number, got {text[:64]}')
    return int(text)


def _json(name, text):
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as exc:
        raise _bad(name, f'expected JSON: {exc}')


def _names(known):
    return ', '.join(f'{each["name"]} ({each["type"]})'
                     for each in known.values()) or 'none'


def _bad(name, reason):
    return exceptions.CommandError(
        formatting.line(f'--property {name[:64]}: {reason}'))

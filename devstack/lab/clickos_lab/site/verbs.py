# SPDX-License-Identifier: Apache-2.0
"""The verbs of cosmosd and valed with their types, from the contract."""

import json
import re

CONTRACT = 'interfaces/clickos_client/contract.json'
DAEMONS = ('cosmosd', 'valed')
_REFERENCE = '#/$defs/'


def markdown(repository):
    """Return a section for each verb and for each type of a member."""
    contract = json.loads((repository / CONTRACT).read_text())
    types = contract['$defs']
    parts = set(re.findall(f'"{re.escape(_REFERENCE)}([^"]+)"',
                           json.dumps(types)))
    sections = [_verb(f'{daemon}: `{name}`', verb, types)
                for daemon in DAEMONS
                for name, verb in contract[daemon].items()]
    sections += [_type(name, types[name]) for name in sorted(parts)]
    return '\n'.join(['', *sections])


def _name(reference):
    return reference['$ref'].removeprefix(_REFERENCE)


def _verb(title, verb, types):
    roles = ', '.join(verb['roles'] or ['any role'])
    size = '' if verb['size'] == 'small' else f'; {verb["size"]}'
    return '\n'.join([
        f'### {title}',
        f'{verb["meaning"]} (*{roles}{size}*)\n',
        _members('Arguments', types[_name(verb['args'])]),
        _members('Answer', types[_name(verb['answer'])])])


def _type(name, described):
    """Return the section of a type that arguments and answers are made of."""
    if 'properties' in described:
        body = _members('Members', described)
    elif any(_text(each) for each in described.get('oneOf', ())):
        rows = [f'| {written(each)} | {_text(each)} |'
                for each in described['oneOf']]
        body = '\n'.join([_text(described), '', '| value | |', '|---|---|',
                          *rows, ''])
    else:
        body = f'{_text(described)}\n\nA value is {written(described)}.\n'
    return f'### Type {name}\n{body}'


def _members(title, described):
    members = described.get('properties', {})
    if not members:
        return f'{title}: none, `{{}}`.\n'
    required = described.get('required', ())
    rows = [_row(name, member, name in required)
            for name, member in members.items()]
    head = [_text(described), '', f'| {title} | type | |', '|---|---|---|']
    return '\n'.join([*head, *rows, ''])


def _row(name, member, is_required):
    notes = [] if is_required else ['optional']
    if member.get('default') is not None:
        notes.append(f'default `{json.dumps(member["default"])}`')
    if text := _text(member):
        notes.append(text)
    return f'| `{name}` | {written(member)} | {"; ".join(notes)} |'


def _text(described):
    return ' '.join(described.get('description', '').split())


def written(described):
    """Write a type of JSON Schema as a reader would."""
    if '$ref' in described:
        name = _name(described)
        return f'[{name}](#type-{name.lower()})'
    for choice in ('anyOf', 'oneOf'):
        if choice in described:
            return ' or '.join(written(each) for each in described[choice])
    if 'prefixItems' in described:
        inner = ', '.join(written(i) for i in described['prefixItems'])
        return f'\\[{inner}\\]'
    if described.get('type') == 'array':
        return f'list of {written(described["items"])}'
    return _simple(described)


def _simple(described):
    if 'const' in described:
        return f'`{json.dumps(described["const"])}`'
    if 'enum' in described:
        return ' or '.join(f'`{json.dumps(v)}`' for v in described['enum'])
    kinds = described.get('type', 'any value')
    kinds = [kinds] if isinstance(kinds, str) else kinds
    text = ' or '.join(kinds)
    limits = [f'{word} {described[key]}' for key, word in
              (('minimum', 'at least'), ('maximum', 'at most'))
              if described.get(key)]
    return ', '.join([text, *limits])

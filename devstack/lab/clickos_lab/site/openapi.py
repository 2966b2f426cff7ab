# SPDX-License-Identifier: Apache-2.0
"""The requests of clickos-api, from its OpenAPI description."""

from clickos_api.http import openapi
from clickos_lab.site import verbs

_METHODS = ('get', 'put', 'post', 'delete')
_FAILED = 400


def markdown(_repository):
    """Return a section for each request."""
    described = openapi.description()
    return '\n'.join(['', *(
        _request(method, path, operations[method])
        for path, operations in sorted(described['paths'].items())
        for method in _METHODS if method in operations)])


def _request(method, path, operation):
    return '\n'.join([
        f'### `{method.upper()} {path}`',
        f'{operation["summary"]}. {operation.get("description", "")}', '',
        '| part | JSON |', '|---|---|', *_rows(operation), ''])


def _rows(operation):
    if 'requestBody' in operation:
        yield _row('body', operation['requestBody'])
    for status, answer in operation['responses'].items():
        if int(status) < _FAILED:
            yield _row(f'answer {status}', answer)


def _row(name, part):
    content = part.get('content')
    text = (_object(content['application/json']['schema'])
            if content else 'none')
    return f'| {name} | {text} |'


def _object(described):
    """Write an object with the types of its members."""
    if 'properties' not in described:
        return _written(described)
    required = described.get('required', ())
    members = (f'`{name}`{"" if name in required else " (optional)"}:'
               f' {_object(member)}'
               for name, member in described['properties'].items())
    return '{' + ', '.join(members) + '}'


def _written(described):
    if 'if' in described:
        return f'{_object(described["else"])} or {_object(described["then"])}'
    if described.get('type') == 'array' and 'items' in described:
        return f'list of {_object(described["items"])}'
    return verbs.written(described)

# SPDX-License-Identifier: Apache-2.0
"""The version document and the OpenAPI description, both without a token."""

import inspect
import json
import re

from clickos_api.http import operation
from clickos_api.http import routes  # noqa: F401  # registers operations
from clickos_api.http import shapes

VERSION = '1.11'
#: Every operation may answer so; docs/interfaces.md has the causes.
_ERRORS = (400, 401, 403, 404, 409, 413, 429, 500, 502, 503, 504,
           507)
_RESPONSES = {
    # keystonemiddleware's own text
    'Unauthenticated': {'description': 'No valid token'},
    'Failure': {'description': 'A refusal, or a failure', 'content': {
        'application/json': {
            'schema': {'$ref': '#/components/schemas/Error'}}}},
}
_IN_PATH = re.compile(r'{(\w+)}')


def _described(each):
    """Describe an operation.Operation."""
    summary, *details = inspect.cleandoc(each.function.__doc__).split(
        '\n\n', 1)
    described = {
        'summary': summary.rstrip('.').replace('``', '`'), 'responses': {
            **{str(status): _answer(schema)
               for status, schema in each.answers.items()},
            **{str(status): _error(status) for status in _ERRORS}}}
    if details:     # OpenAPI has Markdown
        described['description'] = details[0].replace('``', '`')
    if each.query:
        described['parameters'] = [_parameter(name) for name in each.query]
    if each.body:
        described['requestBody'] = {
            'required': True,
            'content': {'application/json': {'schema': each.body}}}
    return described


def _answer(schema):
    if schema is None:
        return {'description': 'Done'}
    return {'description': 'The answer',
            'content': {'application/json': {'schema': schema}}}


def _parameter(name):
    return {'$ref': f'#/components/parameters/{name}'}


def _error(status):
    name = 'Unauthenticated' if status == 401 else 'Failure'
    return {'$ref': f'#/components/responses/{name}'}


def _paths():
    paths = {}
    for each in operation.OPERATIONS:
        for path in each.paths:
            known = paths.setdefault(path, {'parameters': _parameters(path)})
            known[each.method.lower()] = _described(each)
    return paths


def _parameters(path):
    names = _IN_PATH.findall(path)
    if path.startswith('/v1/vnfs/'):
        names.append('vnfc')
    return [_parameter(name) for name in names]


def _parameter_of(name, place, shape, meaning):
    described = {'name': name, 'in': place, 'schema': shape}
    if place == 'path':
        described['required'] = True
    return {**described, 'description': meaning} if meaning else described


def description():
    """Return the OpenAPI description."""
    return {
        'openapi': '3.1.0',
        'info': {'title': 'clickos-api', 'version': VERSION,
                 'license': {'name': 'Apache-2.0',
                             'identifier': 'Apache-2.0'}},
        'paths': _paths(),
        'security': [{'token': []}],
        'components': {
            'parameters': {name: _parameter_of(name, *each) for name, each
                           in shapes.PARAMETERS.items()},
            'responses': _RESPONSES,
            'schemas': {'Error': shapes.ERROR},
            'securitySchemes': {'token': {
                'type': 'apiKey', 'in': 'header', 'name': 'X-Auth-Token'}}},
    }


def versions(base):
    """Return the version document.

    :param base: URL of the service, without a slash at its end
    """
    return {'versions': [{
        'id': 'v1', 'status': 'CURRENT', 'version': VERSION,
        'min_version': '1.0',
        'links': [{'rel': 'self', 'href': f'{base}/v1/'},
                  {'rel': 'describedby', 'href': f'{base}/openapi.json'}]}]}


class Documents:
    """Answers / and /openapi.json before the token is looked at.

    :param application: the WSGI application for all other paths
    """

    def __init__(self, application):
        self._application = application
        self._description = json.dumps(description()).encode()

    def __call__(self, environ, start_response):
        """Answer a request, or pass it on."""
        path = environ.get('PATH_INFO', '')
        if environ['REQUEST_METHOD'] == 'GET' and path in ('', '/'):
            return _send(start_response, '300 Multiple Choices',
                         json.dumps(versions(_base(environ))).encode())
        if environ['REQUEST_METHOD'] == 'GET' and path == '/openapi.json':
            return _send(start_response, '200 OK', self._description)
        return self._application(environ, start_response)


def _base(environ):
    host = environ.get('HTTP_HOST') or environ['SERVER_NAME']
    scheme = environ['wsgi.url_scheme']
    return f'{scheme}://{host}{environ.get("SCRIPT_NAME", "")}'


def _send(start_response, status, body):
    start_response(status, [('Content-Type', 'application/json'),
                            ('Content-Length', str(len(body)))])
    return [body]


if __name__ == '__main__':
    print(json.dumps(description(), indent=1, sort_keys=True))

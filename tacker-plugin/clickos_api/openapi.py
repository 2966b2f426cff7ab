# SPDX-License-Identifier: Apache-2.0
"""The version document and the OpenAPI description, both without a token."""

import json
import re

from clickos_client import flows
from clickos_client import limits
from clickos_client import outcomes
from clickos_client import port_roles

from clickos_api import pages
from clickos_api import states
from clickos_api import validation

VERSION = '1.11'
_UUID = {'type': 'string', 'format': 'uuid'}
_NUMBER = {'type': 'integer', 'minimum': 0, 'maximum': validation.MAX_NUMBER}
_TEXT = {'type': 'string'}
#: The service refuses NUL, and a configuration of white space only, too.
_VALUE = _TEXT
_WRITE = {'type': 'array', 'minItems': 2, 'maxItems': 2, 'items': _TEXT}
_WRITES = {'type': 'array', 'items': _WRITE, 'maxItems': limits.WRITES}
_CONFIG = {'type': 'string', 'minLength': 1}
_NAME = {'type': 'string', 'pattern': r'^[A-Za-z0-9_.-]{1,64}$'}


def _object(required, **properties):
    return {'type': 'object', 'properties': properties,
            'required': list(required)}


def _body(required, **properties):
    return {**_object(required, **properties),
            'additionalProperties': False}


def _list(key, item):
    return _object([key], **{key: {'type': 'array', 'items': item}})


def _pages(key, item):
    """Describe a list that a client may get in pages."""
    link = _object(['rel', 'href'], rel={'enum': ['next']}, href=_TEXT)
    return _object([key], **{
        key: {'type': 'array', 'items': item},
        f'{key}_links': {'type': 'array', 'items': link, 'maxItems': 1}})


_CHANGE = _object(
    ['number', 'status', 'created_at'], number=_NUMBER, created_at=_TEXT,
    status={'enum': [states.PENDING, states.APPLIED, *outcomes.TEXTS]},
    revision=_NUMBER, error=_object(['code', 'message'], code=_TEXT,
                                    message=_TEXT))
_PENDING = _object(['change'], change=_object(
    ['number', 'status'], number=_NUMBER, status={'enum': ['pending']}))
_NAMES = {'type': 'array', 'items': _TEXT}
#: Writes of commands and edits are not repeated at a start of the guest.
_REVISION = _object(['revision'], revision=_NUMBER, commands=_NAMES,
                    edits=_NAMES)
_STATE = _object(
    ['revision', 'number', 'writes'], revision=_NUMBER, number=_NUMBER,
    writes=_WRITES, secrets={
        'type': 'object', 'additionalProperties': _TEXT},
    configuration=_object(
        ['config', 'config_name'], config=_TEXT, config_name=_TEXT,
        replaces=_TEXT))
_SECRET = _object(
    ['id', 'name', 'reference', 'created_at'], id=_UUID, name=_NAME,
    reference=_TEXT, created_at=_TEXT)
_ROLES = _body(['roles'], roles={
    'type': 'array', 'maxItems': len(port_roles.ROLES),
    'items': {'enum': list(port_roles.ROLES)}})
_HOP = {'type': 'string', 'pattern': f'^{validation.HOP.pattern}$'}
_FUSION = _object(['fusion'], fusion=_object(
    ['server', 'hops'], server=_UUID, hops={'type': 'array', 'items': _object(
        ['name', 'group'], name=_HOP, group=_UUID)}))
_HANDLER = {'type': 'string', 'maxLength': limits.HANDLER_NAME,
            'pattern': '^([A-Za-z0-9_@/]+[.])?[A-Za-z0-9_]+$'}
#: Without control characters; the service counts bytes.
_PARAM = {'type': 'string', 'maxLength': limits.PARAMETER_BYTES,
          'pattern': r'^[^\x00-\x1f\x7f-\x9f]*$'}
_READ = {'oneOf': [_HANDLER, {
    'type': 'array', 'minItems': 2, 'maxItems': 2,
    'prefixItems': [_HANDLER, _PARAM]}]}
#: Seconds since the request to the guest for a value.
_AGE = {'type': 'number', 'minimum': 0}
_MAX_AGE = {'type': 'number', 'minimum': 0, 'maximum': limits.MAX_AGE_S}
_COUNTERS = {'type': 'object', 'additionalProperties': {'type': 'integer'}}
_ERROR = _object(['error'], error=_object(['code', 'message'], code=_TEXT,
                                          message=_TEXT))
#: Parameters of lists.
_PAGE = ('limit', 'marker')
#: Parameters of the query that nova-compute sends.
_FOR_SERVICES = ('project_id', 'secrets')
#: Every operation may answer so; docs/interfaces.md has the causes.
_ERRORS = (400, 401, 403, 404, 409, 413, 429, 500, 502, 503, 504,
           507)


def _operation(summary, answers, body=None, query=()):
    """Describe an operation.

    :param answers: {status: schema, None without a body}
    :param body: schema of the request's
    :param query: names of parameters
    """
    described = {'summary': summary, 'responses': {
        **{str(status): _answer(schema)
           for status, schema in answers.items()},
        **{str(status): _error(status) for status in _ERRORS}}}
    if query:
        described['parameters'] = [_parameter(name) for name in query]
    if body:
        described['requestBody'] = {
            'required': True,
            'content': {'application/json': {'schema': body}}}
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


_RESPONSES = {
    # keystonemiddleware's own text
    'Unauthenticated': {'description': 'No valid token'},
    'Failure': {'description': 'A refusal, or a failure', 'content': {
        'application/json': {
            'schema': {'$ref': '#/components/schemas/Error'}}}},
}
_CHANGED = {200: _REVISION, 202: _PENDING}
_OF_A_GUEST = {
    '/handlers': {
        'get': _operation('List handlers', {200: _pages('handlers', _object(
            ['name', 'read', 'write'], name=_TEXT,
            read={'type': 'boolean'}, write={'type': 'boolean'}))},
            query=_PAGE),
        'post': _operation('Write handlers, all or none', _CHANGED, _body(
            ['writes'], writes={**_WRITES, 'minItems': 1}))},
    '/handlers/{name}': {
        'get': _operation('Read a handler', {200: _object(
            ['name', 'value'], name=_TEXT, parameter=_TEXT, value=_TEXT,
            age=_AGE)}, query=('parameter', 'max_age')),
        'put': _operation('Write a handler', _CHANGED,
                          _body(['value'], value=_VALUE))},
    '/reads': {'post': _operation(
        'Read several handlers', {200: _list('values', {'oneOf': [
            _object(['name', 'value'], name=_TEXT, parameter=_TEXT,
                    value=_TEXT, age=_AGE),
            _object(['name', 'error'], name=_TEXT, parameter=_TEXT,
                    error=_object(
                ['code', 'message', 'status'], code=_TEXT, message=_TEXT,
                status={'type': 'integer'}))]})},
        _body(['names'], max_age=_MAX_AGE, names={
            'type': 'array', 'minItems': 1, 'maxItems': limits.READS,
            'items': _READ}))},
    '/ports': {'get': _operation('List ports', {200: _pages('ports', _object(
        ['id', 'mac_address', 'link_up', 'counters'],
        id={'type': ['string', 'null']}, mac_address=_TEXT,
        link_up={'type': 'boolean'}, counters=_COUNTERS))}, query=_PAGE)},
    '/events': {'get': _operation(
        'List the starts of the guest', {200: _list('events', _object(
            ['request_id', 'action', 'result', 'finished_at', 'details'],
            request_id=_TEXT, action=_TEXT,
            result={'type': ['string', 'null']},
            finished_at={'type': ['string', 'null']}, details=_TEXT))})},
    '/flows': {'post': _operation(
        'Let guests go on with the flows of this one',
        {200: _object(['flows'], flows=_NUMBER)},
        _body(['to'], to={'type': 'array', 'items': _UUID, 'minItems': 1,
                          'maxItems': flows.MAX_TAKERS}))},
    '/configuration': {'put': _operation(
        'Replace the configuration', _CHANGED,
        _body(['config'], config=_CONFIG, config_name=_NAME))},
    '/changes': {'get': _operation('List the newest changes',
                                   {200: _pages('changes', _CHANGE)},
                                   query=_PAGE)},
    '/changes/{number}': {'get': _operation(
        'Show a change', {200: _object(['change'], change=_CHANGE)})},
    '/desired-state': {
        'get': _operation('Show desired state', {200: _STATE},
                          query=_FOR_SERVICES),
        'post': _operation('Restore an earlier revision', _CHANGED,
                           _body(['revision'], revision=_NUMBER)),
        'delete': _operation('Forget the changes', {204: None})},
}
_OTHER = {
    '/v1/states': {
        'post': _operation(
            'Make a state that user_data refers to',
            {201: _object(['id'], id=_UUID)},
            _body(['config'], config=_CONFIG, config_name=_NAME,
                  writes=_WRITES))},
    '/v1/states/{id}': {
        'put': _operation(
            'Give a state another configuration',
            {200: _object(['id', 'changed'], id=_UUID,
                          changed={'type': 'boolean'})},
            _body(['config'], config=_CONFIG, config_name=_NAME,
                  writes=_WRITES, keep={
                      'type': ['array', 'null'], 'items': _TEXT,
                      'maxItems': limits.WRITES})),
        'get': _operation('Show a state', {200: _STATE},
                          query=_FOR_SERVICES),
        'delete': _operation('Forget a state', {204: None},
                             query=('project_id',))},
    '/v1/states/{id}/starts': {'post': _operation(
        'Note that a guest starts with a state', {200: _object([])}, _body(
            ['number', 'revision', 'incarnation', 'server_id', 'project_id'],
            number=_NUMBER, revision=_NUMBER, incarnation=_UUID,
            server_id=_UUID, project_id=_TEXT))},
    '/v1/secrets': {
        'get': _operation('List secrets, without their values',
                          {200: _pages('secrets', _SECRET)}, query=_PAGE),
        'post': _operation(
            'Make a secret', {201: _object(['secret'], secret=_SECRET)},
            _body(['name', 'value'], name=_NAME, value={
                'type': 'string', 'minLength': 1,
                'maxLength': validation.SECRET_BYTES}))},
    '/v1/secrets/{id}': {
        'get': _operation('Show a secret, without its value',
                          {200: _object(['secret'], secret=_SECRET)}),
        'delete': _operation('Delete a secret', {204: None})},
    '/v1/ports/{id}/roles': {'put': _operation(
        'Let a port send what only servers send', {200: _ROLES}, _ROLES)},
    '/v1/catalog': {'get': _operation(
        "List the packages of the operator's catalog",
        {200: _pages('packages', _object(
            ['name', 'product', 'provider', 'version', 'description'],
            name=_TEXT, product=_TEXT, provider=_TEXT, version=_TEXT,
            description=_TEXT))}, query=_PAGE)},
    '/v1/catalog/{package}': {'get': _operation(
        'Get a package of the catalog', {200: _object(
            ['package'], package=_object(['name', 'content'], name=_TEXT,
                                         content=_TEXT))})},
    '/v1/chains/{id}': {'get': _operation(
        'Show the counters of a port chain',
        {200: _object(['chain'], chain={'type': 'object'})})},
    '/v1/chains/{id}/fusion': {
        'get': _operation('Show which guest has the hops of a fused chain',
                          {200: _FUSION}),
        'put': _operation(
            'Let one guest answer for all hops of a chain', {200: _FUSION},
            _body(['server', 'hops'], server=_UUID, hops={
                'type': 'array', 'minItems': 2,
                'maxItems': limits.CHAIN_HOPS, 'items': _body(
                    ['name', 'server', 'group'], name=_HOP, server=_UUID,
                    group=_UUID)})),
        'delete': _operation("Let the hops' own guests answer again",
                             {204: None})},
}
_PARAMETERS = {
    'id': {'name': 'id', 'in': 'path', 'required': True, 'schema': _UUID},
    'name': {'name': 'name', 'in': 'path', 'required': True,
             'description': 'ELEMENT.HANDLER', 'schema': {
                 'type': 'string', 'maxLength': limits.HANDLER_NAME,
                 'pattern': '^([A-Za-z0-9_@]+[.])?[A-Za-z0-9_]+$'}},
    'package': {'name': 'package', 'in': 'path', 'required': True,
                'schema': {'type': 'string', 'maxLength': 255,
                           'pattern': '^[A-Za-z0-9_.-]+$'}},
    'number': {'name': 'number', 'in': 'path', 'required': True,
               'schema': _NUMBER},
    'vnfc': {'name': 'vnfc', 'in': 'query', 'schema': {
        'type': 'string', 'maxLength': validation.VNFC_LENGTH},
        'description': 'VDU or VNFC, if the VNF has several guests'},
    'project_id': {'name': 'project_id', 'in': 'query', 'schema': {
        'type': 'string', 'minLength': 1,
        'maxLength': validation.PROJECT_LENGTH},
        'description': 'Whose state it has to be, if a service asks'},
    'parameter': {'name': 'parameter', 'in': 'query', 'schema': _PARAM,
                  'description': 'For a handler that takes one, such as'
                                 ' lookup; the answer is always new'},
    'max_age': {'name': 'max_age', 'in': 'query', 'schema': _MAX_AGE,
                'description': 'Seconds that the value may be old; without'
                               ' it, the guest answers'},
    'limit': {'name': 'limit', 'in': 'query', 'schema': {
        'type': 'integer', 'minimum': 1, 'maximum': pages.MAX_LIMIT},
        'description': 'Entries of a page; without it, the whole list'},
    'marker': {'name': 'marker', 'in': 'query', 'schema': _TEXT,
               'description': 'The last entry of the page before: its name,'
                              ' id, number or MAC address'},
    'secrets': {'name': 'secrets', 'in': 'query', 'schema': {
        'enum': ['true']}, 'description': 'With the values of its secrets'},
}
_IN_PATH = re.compile(r'{(\w+)}')


def _paths():
    paths = dict(_OTHER)
    for kind in ('servers', 'vnfs'):
        for suffix, operations in _OF_A_GUEST.items():
            paths[f'/v1/{kind}/{{id}}{suffix}'] = operations
    return {path: {**operations, 'parameters': _parameters(path)}
            for path, operations in paths.items()}


def _parameters(path):
    names = _IN_PATH.findall(path)
    if path.startswith('/v1/vnfs/'):
        names.append('vnfc')
    return [_parameter(name) for name in names]


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
            'parameters': _PARAMETERS,
            'responses': _RESPONSES,
            'schemas': {'Error': _ERROR},
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

# SPDX-License-Identifier: Apache-2.0
"""Every place of the API where an id can stand, read from its tables.

The routes come from Flask, the bodies and queries from the description. A
route without a description is an error, as an id of an unknown kind is. So a
new route is tested or fails here.
"""

import copy
import dataclasses
import itertools

from clickos_client import secrets

from clickos_api.http import openapi

#: Kind of the object that an id names, by the first part of a path.
PATHS = {'servers': 'server', 'vnfs': 'vnf', 'states': 'state',
         'secrets': 'secret', 'chains': 'chain', 'ports': 'port',
         'limits': 'limits',
         'catalog': None}     # packages of the operator, for all projects
#: The same by the name of a property or a parameter of a query. None names
#: no object: a guest's incarnation is a number that it made, and a marker is
#: compared with the entries of the list that the caller gets.
NAMES = {'server': 'server', 'server_id': 'server', 'to': 'server',
         'group': 'group', 'servers': 'server', 'vnfc': 'vnfc',
         'project_id': 'project',
         'incarnation': None, 'secrets': None, 'max_age': None,
         'parameter': None, 'limit': None, 'marker': None}
#: Kinds of further objects of the test.
KINDS = {'taker': 'server', 'hop': 'server', 'fused': 'server',
         'of_vnf': 'server', 'group2': 'group'}
#: Properties whose texts may refer to secrets.
_REFERRING = ('writes', 'value')
#: The caller chooses the id, and its project is a part of the key.
_CHOSEN = {('put', '/v1/limits/{id}')}
#: Texts that nothing resolves: the value of a secret that is made.
_OPAQUE = {('post', '/v1/secrets', 'value')}


@dataclasses.dataclass(frozen=True)
class Place:
    """A place of an id.

    :param where: 'path', 'query', 'body', 'secret' or 'reference'
    :param keys: to it, in that part of the request
    :param kind: of the object that the id names
    """

    where: str
    keys: tuple
    kind: str


@dataclasses.dataclass(frozen=True)
class Operation:
    """A method of a route.

    :param path: as the description has it
    :param described: the description
    """

    method: str
    path: str
    described: dict

    @property
    def kind(self):
        """The first part of the path below the version."""
        return self.path.split('/')[2]

    @property
    def schema(self):
        """The schema of the body, or None."""
        body = self.described.get('requestBody')
        return body and body['content']['application/json']['schema']

    def queries(self):
        """List the names of the parameters of the query."""
        return [found['name'] for found in map(
            _parameter, self.described['all_parameters'])
            if found['in'] == 'query']

    def places(self):
        """List the places of ids; those of user_data and VNFs, too."""
        if '{id}' in self.path and (
                self.method, self.path) not in _CHOSEN:
            yield Place('path', (), PATHS[self.kind])
        for name in self.queries():
            if NAMES[name]:
                yield Place('query', (name,), NAMES[name])
        for keys in _ids(self.schema or {}):
            kind = NAMES[_name(keys)]
            if kind:
                yield Place('body', keys, kind)
        for name in (self.schema or {}).get('properties', ()):
            if name in _REFERRING and (
                    self.method, self.path, name) not in _OPAQUE:
                yield Place('secret', (name,), 'secret')
        if self.kind == 'servers':
            yield Place('reference', ('user_data',), 'state')
        if self.kind == 'vnfs':
            yield Place('reference', ('vnf',), 'server')


def _parameter(found):
    name = found['$ref'].rpartition('/')[2]
    return openapi.description()['components']['parameters'][name]


def _name(keys):
    return next(key for key in reversed(keys) if isinstance(key, str))


def _ids(schema, keys=()):
    """Find the UUIDs of a schema; a list's first item stands for all."""
    if schema.get('format') == 'uuid' or keys and keys[-1] == 'project_id':
        yield keys
    for name, each in schema.get('properties', {}).items():
        yield from _ids(each, (*keys, name))
    if 'items' in schema:
        yield from _ids(schema['items'], (*keys, 0))


def operations():
    """List the operations of the service."""
    for path, described in openapi.description()['paths'].items():
        for method in described.keys() - {'parameters'}:
            yield Operation(method, path, {
                **described[method], 'all_parameters': [
                    *described['parameters'],
                    *described[method].get('parameters', ())]})


class Request:
    """A request of an operation, with the caller's own ids.

    :param own: {kind: id} of the caller
    :param examples: {name: value} of all properties and parameters
    """

    def __init__(self, operation, own, examples):
        self.operation, self.own = operation, own
        self._examples = examples
        self.id = own.get(PATHS[operation.kind])
        self.query = {name: examples[name] for name in operation.queries()
                      if NAMES[name]}
        self.body = self._body()

    def _body(self):
        schema = self.operation.schema
        if not schema:
            return None
        return {name: copy.deepcopy(self._examples[name]) for name in
                (*schema['required'], *(
                    name for name in _REFERRING
                    if name in schema['properties']))}

    @property
    def path(self):
        """The path with its parameters."""
        return self.operation.path.format_map(
            {**self._examples, 'id': self.id})

    def put(self, place, value):
        """Set the id at a place.

        :returns: False for a reference, which is no part of the request
        """
        if place.where == 'path':
            self.id = value
        elif place.where == 'query':
            self.query[place.keys[0]] = value
        elif place.where == 'secret':
            self._refer(place.keys[0], secrets.reference(value))
        elif place.where == 'body':
            *keys, last = place.keys
            found = self.body
            for key in keys:
                found = found[key]
            found[last] = value
        else:
            return False
        return True

    def _refer(self, name, text):
        self.body[name] = text if name == 'value' else [['fw.config', text]]


def cases(operation, foreign, own):
    """Give (place, id): every foreign id at every place of an operation.

    An own id of another kind is as foreign as one of another project. Only
    the id of a project is no UUID.
    """
    for place in operation.places():
        if place.kind == 'project':
            yield place, foreign['project']
            continue
        wrong = (value for name, value in own.items()
                 if KINDS.get(name, name) != place.kind)
        for value in itertools.chain(foreign.values(), wrong):
            if value != foreign['project']:
                yield place, value

# SPDX-License-Identifier: Apache-2.0
"""Operations of the service: one entry is route, check, right and document.

No operation sees an id: Authority.find() has made it the object that it is
for the caller, by the operation's rule of the policy.
"""

import contextlib
import dataclasses
import re
import typing

import flask
from oslo_context import context as oslo_context

from clickos_api import errors
from clickos_api.http import check
from clickos_api.operations import policy
from clickos_api.outside import ownership

#: All operations, in the order of the documents.
OPERATIONS = []
#: Words for the ids of a path, by kind.
_WORDS = {'servers': 'server', 'vnfs': 'VNF instance', 'states': 'state',
          'secrets': 'secret', 'ports': 'port', 'chains': 'port chain',
          'fusions': 'port chain', 'limits': 'limits'}
#: How Flask has the parameters of a path.
_OF_FLASK = {'name': '<path:name>', 'number': '<int:number>'}
#: The kind of operations that are for servers and for VNFs.
GUESTS = 'guests'


@dataclasses.dataclass
class Request:
    """A request that has been checked.

    :ivar found: the object of its id, of authority.Authority
    """

    service: typing.Any
    context: typing.Any
    target: ownership.Target
    path: dict
    query: dict
    body: typing.Any
    found: typing.Any = None

    def find(self, kind, key, rule):
        """Return the object of an id in the body."""
        return self.service.authority.find(
            self.context, None, ownership.Target(kind, key), rule)

    def notify(self, event, details):
        """Let auditors know."""
        self.service.audit.notify(self.context, event, details)


@dataclasses.dataclass(frozen=True)
class Operation:
    """An operation of the service.

    :param path: without /v1, as OpenAPI has it
    :param rule: of the policy
    :param kind: what the id of the path is; 'projects' without one. A
        function of id and body may return it
    :param answers: {status: schema, None without a body}
    :param body: schema of the request's, None without one
    :param query: names of shapes.PARAMETERS
    :param parse: returns a body as the function takes it, of the body and
        the service's options; refuses what a schema cannot say
    """

    method: str
    path: str
    rule: str
    kind: typing.Any
    answers: dict
    body: dict | None
    query: tuple
    parse: typing.Any
    function: typing.Any
    shape: check.Shape | None

    @property
    def paths(self):
        """The paths as OpenAPI has them."""
        if self.kind != GUESTS:
            return [f'/v1{self.path}']
        return [f'/v1/{kind}/{{id}}{self.path}' for kind in ('servers',
                                                             'vnfs')]

    def allowed_by(self, rule):
        """Return the path that a rule of the policy allows, or None."""
        base = '/{servers or vnfs}/{id}' if self.kind == GUESTS else ''
        if rule == policy.SECRET_READ and 'secrets' in self.query:
            return f'/v1{base}{self.path}?secrets=true'
        return f'/v1{base}{self.path}' if rule == self.rule else None

    def rule_of_flask(self):
        """Return the path with Flask's parameters."""
        base = '/<any(servers,vnfs):kind>/<id>' if self.kind == GUESTS else ''
        return base + re.sub(
            r'{(\w+)}', lambda name: _OF_FLASK.get(name[1], f'<{name[1]}>'),
            self.path)

    def charged(self, service):
        """Return the project whose rate a request counts for.

        A service acts for the project that it names. So one whose servers
        start again and again leaves the others their starts.
        """
        context, named = caller(), None
        if service.authority.acts_for_others(context, self.rule):
            with contextlib.suppress(errors.ApiError):   # respond() raises it
                named = self._named_project()
        return named or context.project_id

    def _named_project(self):
        if self.rule == policy.STATE_START:
            return self.shape.body(flask.request.get_data())['project_id']
        found = flask.request.args.get('project_id')
        if found is None or 'project_id' not in self.query:
            return None
        return check.of_query('project_id', found)

    def respond(self, service, path):
        """Answer a request of Flask.

        A VNF may have another guest than the service remembers.
        """
        request = self._request(service, path)
        try:
            return self._answer(request)
        except errors.ApiError as exc:
            if not service.authority.has_other_guest(
                    request.context, request.target, self.rule, exc):
                raise
        return self._answer(request)

    def _answer(self, request):
        # A body names the project of a start, which only services note.
        project_id = request.query.get('project_id') or (
            self.rule == policy.STATE_START and request.body['project_id'])
        request.found = request.service.authority.find(
            request.context, project_id or None, request.target, self.rule)
        return self.function(request)

    def _request(self, service, path):
        context = caller()
        names = (*self.query, 'vnfc') if self.kind == GUESTS else self.query
        kind = path.pop('kind', self.kind)
        key = path.pop('id', None)
        if key is not None:
            key = check.identifier(key, _WORDS.get(kind, 'state'))
        query = {name: check.of_query(name, flask.request.args[name])
                 for name in names if name in flask.request.args}
        if 'name' in path:
            check.HANDLER.check(path['name'], 'handler')
        if 'number' in path:
            check.NUMBER.check(path['number'], 'change')
        body = self.shape and self.shape.body(flask.request.get_data())
        if self.parse:
            body = self.parse(body, service.options)
        if callable(kind):
            kind = kind(key, body)
        target = ownership.Target(kind, key or context.project_id,
                                  query.get('vnfc'))
        return Request(service, context, target, path, query, body)


def operation(method, path, rule, answers, kind='projects', body=None,
              query=(), parse=None):
    """Register the function below as an operation; see Operation.

    Its first line says in the documents what it does.
    """
    def register(function):
        OPERATIONS.append(Operation(
            method, path, rule, kind, answers, body, query, parse, function,
            body and check.Shape(body)))
        return function
    return register


def caller():
    """Return the caller as the auth_token middleware found it.

    :raises errors.Forbidden: for a token of no project, since every server
        belongs to one
    """
    context = oslo_context.RequestContext.from_environ(flask.request.environ)
    if not context.project_id:
        raise errors.Forbidden('the token is scoped to no project; ask for'
                               ' one that is scoped to the guest\'s')
    return context


def add_routes(blueprint, service):
    """Give a blueprint of Flask a route for each operation."""
    for each in OPERATIONS:
        blueprint.add_url_rule(
            each.rule_of_flask(), each.function.__name__,
            lambda each=each, **path: each.respond(service, path),
            methods=[each.method])

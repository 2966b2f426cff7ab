# SPDX-License-Identifier: Apache-2.0
"""URLs to operations."""

import flask
from oslo_context import context as oslo_context

from clickos_api import errors
from clickos_api import ownership
from clickos_api import validation


def blueprint(handlers, limits):
    """Return the routes of /v1.

    :param handlers: handlers.Handlers
    :param limits: the option group [clickos_api]
    """
    routes = flask.Blueprint('v1', __name__, url_prefix='/v1')
    base = '/<any(servers,vnfs):kind>/<target_id>'

    @routes.get(f'{base}/handlers')
    def list_handlers(kind, target_id):
        found = handlers.list(_context(), _target(kind, target_id))
        return {'handlers': found}

    @routes.get(f'{base}/ports')
    def list_ports(kind, target_id):
        found = handlers.ports(_context(), _target(kind, target_id))
        return {'ports': found}

    @routes.get(f'{base}/handlers/<path:name>')
    def read_handler(kind, target_id, name):
        value = handlers.read(_context(), _target(kind, target_id),
                              validation.handler(name))
        return {'name': name, 'value': value}

    @routes.put(f'{base}/handlers/<path:name>')
    def write_handler(kind, target_id, name):
        value = validation.value_body(flask.request.get_data(),
                                      limits.max_value_bytes)
        revision = handlers.write(_context(), _target(kind, target_id),
                                  [[validation.handler(name), value]])
        return {'revision': revision}

    @routes.post(f'{base}/handlers')
    def write_handlers(kind, target_id):
        writes = validation.writes_body(flask.request.get_data(),
                                        limits.max_value_bytes,
                                        limits.max_writes)
        revision = handlers.write(_context(), _target(kind, target_id),
                                  writes)
        return {'revision': revision}

    @routes.put(f'{base}/configuration')
    def replace_configuration(kind, target_id):
        revision = handlers.replace(
            _context(), _target(kind, target_id),
            validation.configuration_body(flask.request.get_data()))
        return {'revision': revision}

    @routes.get(f'{base}/desired-state')
    def show_desired_state(kind, target_id):
        state = handlers.desired_state(_context(), _target(kind, target_id))
        answer = {'revision': state.revision, 'writes': state.writes}
        if state.configuration:
            answer['configuration'] = state.configuration
        return answer

    @routes.delete(f'{base}/desired-state')
    def delete_desired_state(kind, target_id):
        handlers.forget(_context(), _target(kind, target_id))
        return '', 204

    @routes.get('/chains/<chain_id>')
    def show_chain(chain_id):
        return {'chain': handlers.chains.counters(
            _context(), validation.uuid(chain_id, 'port chain'))}

    return routes


def _context():
    """Return the caller as the auth_token middleware found it.

    :raises errors.Forbidden: for a token of no project, since every server
        belongs to one
    """
    context = oslo_context.RequestContext.from_environ(flask.request.environ)
    if not context.project_id:
        raise errors.Forbidden('the token is scoped to no project; ask for'
                               ' one that is scoped to the guest\'s')
    return context


def _target(kind, target_id):
    what = 'server' if kind == 'servers' else 'VNF instance'
    return ownership.Target(kind, validation.uuid(target_id, what),
                            validation.vnfc(flask.request.args.get('vnfc')))

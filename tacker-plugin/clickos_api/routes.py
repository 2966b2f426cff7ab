# SPDX-License-Identifier: Apache-2.0
"""URLs to operations."""

import flask
from oslo_context import context as oslo_context

from clickos_api import errors
from clickos_api import ownership
from clickos_api import pages
from clickos_api import rates
from clickos_api import states
from clickos_api import validation


def blueprint(handlers, limits):
    """Return the routes of /v1.

    :param handlers: handlers.Handlers
    :param limits: the option group [clickos_api]
    """
    routes = flask.Blueprint('v1', __name__, url_prefix='/v1')
    base = '/<any(servers,vnfs):kind>/<target_id>'
    requests = rates.Rate(limits.requests_per_minute, 'requests')
    writes = rates.Rate(limits.writes_per_minute, 'changes')

    @routes.before_request
    def limit():
        project_id = _context().project_id
        requests.take(project_id)
        if flask.request.method != 'GET' \
                and flask.request.endpoint != 'v1.read_handlers':
            writes.take(project_id)

    def shown(state):
        """Return a state, with its secrets if a service wants them."""
        answer = _state(state)
        if flask.request.args.get('secrets') == 'true':
            answer['secrets'] = handlers.secrets_of(_context(), state)
        return answer

    @routes.get(f'{base}/handlers')
    def list_handlers(kind, target_id):
        page = pages.Page(flask.request)
        found = handlers.list(_context(), _target(kind, target_id))
        return page.of('handlers', found, 'name')

    @routes.get(f'{base}/ports')
    def list_ports(kind, target_id):
        page = pages.Page(flask.request)
        found = handlers.ports(_context(), _target(kind, target_id))
        return page.of('ports', found, 'mac_address')

    @routes.get(f'{base}/events')
    def list_events(kind, target_id):
        return {'events': handlers.events.list(
            _context(), _target(kind, target_id))}

    @routes.get(f'{base}/handlers/<path:name>')
    def read_handler(kind, target_id, name):
        max_age_s = validation.max_age(flask.request.args.get('max_age'))
        read = states.Read(validation.handler(name), validation.parameter(
            flask.request.args.get('parameter', '')))
        return _read(read, handlers.read(
            _context(), _target(kind, target_id), read, max_age_s),
            max_age_s)

    @routes.post(f'{base}/reads')
    def read_handlers(kind, target_id):
        reads, max_age_s = validation.reads_body(flask.request.get_data())
        found = handlers.read_many(_context(), _target(kind, target_id),
                                   reads, max_age_s)
        return {'values': [_read(read, each, max_age_s)
                           for read, each in found]}

    @routes.put(f'{base}/handlers/<path:name>')
    def write_handler(kind, target_id, name):
        value = validation.value_body(flask.request.get_data(),
                                      limits.max_value_bytes)
        return _verdict(handlers.write(
            _context(), _target(kind, target_id),
            [[validation.handler(name), value]]))

    @routes.post(f'{base}/handlers')
    def write_handlers(kind, target_id):
        return _verdict(handlers.write(
            _context(), _target(kind, target_id),
            validation.writes_body(flask.request.get_data(),
                                   limits.max_value_bytes,
                                   limits.max_writes)))

    @routes.post(f'{base}/flows')
    def give_flows(kind, target_id):
        return {'flows': handlers.give_flows(
            _context(), _target(kind, target_id),
            validation.flows_body(flask.request.get_data()))}

    @routes.put(f'{base}/configuration')
    def replace_configuration(kind, target_id):
        return _verdict(handlers.replace(
            _context(), _target(kind, target_id),
            validation.configuration_body(flask.request.get_data())))

    @routes.get(f'{base}/changes')
    def list_changes(kind, target_id):
        page = pages.Page(flask.request)
        found = handlers.changes(_context(), _target(kind, target_id))
        return page.of('changes', found, 'number')

    @routes.get(f'{base}/changes/<int:number>')
    def show_change(kind, target_id, number):
        return {'change': handlers.change(
            _context(), _target(kind, target_id),
            validation.number(number, 'change'))}

    @routes.get(f'{base}/desired-state')
    def show_desired_state(kind, target_id):
        return shown(handlers.desired_state(
            _context(), _target(kind, target_id), _project()))

    @routes.post(f'{base}/desired-state')
    def restore_desired_state(kind, target_id):
        return _verdict(handlers.restore(
            _context(), _target(kind, target_id),
            validation.revision_body(flask.request.get_data())))

    @routes.delete(f'{base}/desired-state')
    def delete_desired_state(kind, target_id):
        handlers.forget(_context(), _target(kind, target_id))
        return '', 204

    @routes.post('/states')
    def create_state():
        return {'id': handlers.create_state(
            _context(), validation.state_body(flask.request.get_data()))}, 201

    @routes.put('/states/<state_id>')
    def rebase_state(state_id):
        state_id = validation.uuid(state_id, 'state')
        changed = handlers.rebase_state(
            _context(), state_id,
            *validation.rebase_body(flask.request.get_data()))
        return {'id': state_id, 'changed': changed}

    @routes.get('/states/<state_id>')
    def show_state(state_id):
        found = handlers.show_state(
            _context(), validation.uuid(state_id, 'state'), _project())
        return {**shown(found), 'project_id': found.project_id}

    @routes.delete('/states/<state_id>')
    def delete_state(state_id):
        handlers.delete_state(
            _context(), validation.uuid(state_id, 'state'), _project())
        return '', 204

    @routes.post('/states/<state_id>/starts')
    def start_state(state_id):
        handlers.start(_context(), validation.uuid(state_id, 'state'),
                       validation.start_body(flask.request.get_data()))
        return {}

    @routes.post('/secrets')
    def create_secret():
        name, value = validation.secret_body(flask.request.get_data())
        return {'secret': handlers.create_secret(_context(), name, value)}, 201

    @routes.get('/secrets')
    def list_secrets():
        page = pages.Page(flask.request)
        found = handlers.list_secrets(_context())
        return page.of('secrets', found, 'id')

    @routes.get('/secrets/<secret_id>')
    def show_secret(secret_id):
        return {'secret': handlers.show_secret(
            _context(), validation.uuid(secret_id, 'secret'))}

    @routes.delete('/secrets/<secret_id>')
    def delete_secret(secret_id):
        handlers.delete_secret(_context(),
                               validation.uuid(secret_id, 'secret'))
        return '', 204

    @routes.put('/ports/<port_id>/roles')
    def set_port_roles(port_id):
        return {'roles': handlers.port_roles.set(
            _context(), validation.uuid(port_id, 'port'),
            validation.roles_body(flask.request.get_data()))}

    @routes.get('/catalog')
    def list_catalog():
        page = pages.Page(flask.request)
        found = handlers.catalog.list(_context())
        return page.of('packages', found, 'name')

    @routes.get('/catalog/<package>')
    def show_package(package):
        found = handlers.catalog.package(_context(), package)
        answer = flask.Response(found.pieces(), mimetype='application/json')
        answer.content_length = found.length
        answer.call_on_close(found.file.close)
        return answer

    @routes.get('/chains/<chain_id>')
    def show_chain(chain_id):
        return {'chain': handlers.chains.counters(
            _context(), validation.uuid(chain_id, 'port chain'))}

    @routes.get('/chains/<chain_id>/fusion')
    def show_fusion(chain_id):
        return {'fusion': handlers.fusing.show(
            _context(), validation.uuid(chain_id, 'port chain'))}

    @routes.put('/chains/<chain_id>/fusion')
    def fuse_chain(chain_id):
        return {'fusion': handlers.fusing.fuse(
            _context(), validation.uuid(chain_id, 'port chain'),
            *validation.fusion_body(flask.request.get_data()))}

    @routes.delete('/chains/<chain_id>/fusion')
    def unfuse_chain(chain_id):
        handlers.fusing.unfuse(_context(),
                               validation.uuid(chain_id, 'port chain'))
        return '', 204

    return routes


def _read(read, found, max_age_s):
    """Return what a read of a handler brought."""
    shown = {'name': read.name, **(
        {'parameter': read.parameter} if read.parameter else {})}
    if isinstance(found, errors.ApiError):
        return {**shown, 'error': {
            **errors.body(found)['error'], 'status': found.status}}
    value, age_s = found
    shown['value'] = value
    if max_age_s is not None:
        shown['age'] = round(age_s, 3)
    return shown


def _verdict(verdict):
    """Return 200 with the revision, or 202 with the change's address."""
    if verdict.revision is not None:
        return {'revision': verdict.revision, **{
            key: list(names) for key, names in (
                ('commands', verdict.commands), ('edits', verdict.edits))
            if names}}
    location = f'/v1/servers/{verdict.server_id}/changes/{verdict.number}'
    return ({'change': {'number': verdict.number, 'status': states.PENDING}},
            202, {'Location': location, 'Retry-After': '1'})


def _state(found):
    answer = {'revision': found.revision, 'number': found.number,
              'writes': found.writes}
    if found.configuration:
        answer['configuration'] = found.configuration
    return answer


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


def _project():
    """Return the project that a service or operator asks for, or None."""
    found = flask.request.args.get('project_id')
    return found and validation.project(found)


def _target(kind, target_id):
    what = 'server' if kind == 'servers' else 'VNF instance'
    return ownership.Target(kind, validation.uuid(target_id, what),
                            validation.vnfc(flask.request.args.get('vnfc')))

# SPDX-License-Identifier: Apache-2.0
"""The operations of /v1."""

import flask
from oslo_log import log as logging
from oslo_policy import policy as oslo_policy

from clickos_api import errors
from clickos_api.http import check
from clickos_api.http import operation as operations
from clickos_api.http.operation import GUESTS
from clickos_api.http.operation import operation
from clickos_api.http import pages
from clickos_api.http import rates
from clickos_api.http import shapes
from clickos_api.operations import policy
from clickos_api.state import history
from clickos_api.state import keys
from clickos_api.state import states

LOG = logging.getLogger(__name__)

#: Methods that change nothing.
_SAFE = ('GET', 'HEAD', 'OPTIONS')


def list_rules():
    """List the rules for oslo.policy's sample generator."""
    return [oslo_policy.DocumentedRuleDefault(
        rule.name, rule.check_str, rule.description,
        [{'method': each.method, 'path': each.allowed_by(rule.name)}
         for each in operations.OPERATIONS if each.allowed_by(rule.name)],
        scope_types=rule.scope_types,
        deprecated_rule=rule.deprecated_rule) for rule in policy.RULES]


def blueprint(service):
    """Return the routes of /v1.

    :param service: service.Service
    """
    routes = flask.Blueprint('v1', __name__, url_prefix='/v1')
    operations.add_routes(routes, service)
    return routes


def limiter(service, limits):
    """Return what refuses a request that is over its project's rate.

    It is for each request of the application: those that no route has cost
    time, too.

    :param service: service.Service
    :param limits: the option group [clickos_api]
    """
    requests = rates.Rate(limits.requests_per_minute, 'requests')
    writes = rates.Rate(limits.writes_per_minute, 'changes')
    known = {f'v1.{each.function.__name__}': each
             for each in operations.OPERATIONS}

    def limit():
        found = known.get(flask.request.endpoint)
        project_id = found.charged(service) if found \
            else operations.caller().project_id
        requests.take(project_id)
        if flask.request.url_rule is not None \
                and flask.request.method not in _SAFE \
                and flask.request.endpoint != 'v1.read_handlers':
            writes.take(project_id)

    return limit


@operation('GET', '/handlers', policy.LIST, {200: shapes.HANDLERS}, GUESTS,
           query=shapes.PAGE)
def list_handlers(request):
    """List handlers."""
    page = pages.Page(flask.request)
    return page.of('handlers', request.service.reading.list(request.found),
                   'name')


@operation('POST', '/handlers', policy.WRITE, shapes.CHANGED, GUESTS,
           shapes.WRITES, parse=check.writes_body)
def write_handlers(request):
    """Write handlers, all or none."""
    return _write(request, request.body['writes'])


@operation('GET', '/handlers/{name}', policy.READ,
           {200: shapes.VALUE_ANSWER}, GUESTS, query=('parameter', 'max_age'))
def read_handler(request):
    """Read a handler.

    With ``max_age`` the answer has ``age``, with ``parameter`` it has
    ``parameter``.
    """
    max_age_s = request.query.get('max_age')
    read = states.Read(request.path['name'],
                       request.query.get('parameter', ''))
    return _value(read, request.service.reading.one(
        request.found, read, max_age_s), max_age_s)


@operation('PUT', '/handlers/{name}', policy.WRITE, shapes.CHANGED, GUESTS,
           shapes.VALUE_BODY, parse=check.value_body)
def write_handler(request):
    """Write a handler.

    ``commands`` and ``edits`` name handlers whose writes are not values:
    desired state leaves them out.
    """
    return _write(request, [[request.path['name'], request.body['value']]])


@operation('POST', '/reads', policy.READ, {200: shapes.VALUES}, GUESTS,
           shapes.READS)
def read_handlers(request):
    """Read several handlers by one request to the guest's host.

    Each is read for itself: a failed one has ``error`` instead of a value.
    All values together have at most 256 KiB; those beyond get ``too-long``.
    A message has at most 600 characters.
    """
    max_age_s = request.body.get('max_age')
    reads = [states.Read(*each) if isinstance(each, list)
             else states.Read(each) for each in request.body['names']]
    found = request.service.reading.several(request.found, reads, max_age_s)
    return {'values': [_value(read, each, max_age_s)
                       for read, each in found]}


@operation('GET', '/ports', policy.PORT_LIST, {200: shapes.PORTS}, GUESTS,
           query=shapes.PAGE)
def list_ports(request):
    """List what the switch counted at the ports since the guest started.

    rx counts frames that the guest sent, ``dropped_*`` the drops by reason.
    """
    page = pages.Page(flask.request)
    return page.of('ports', request.service.reading.ports(request.found),
                   'id', 'mac_address')


@operation('GET', '/events', policy.EVENT_LIST, {200: shapes.EVENTS}, GUESTS)
def list_events(request):
    """List the reboots and the failed starts that a guest's host noted.

    The answer has the event ``clickos_start`` of the newest 8 actions, also
    where Nova hides the details of events from members.
    """
    return {'events': request.service.events.of(request.found)}


@operation('POST', '/flows', policy.FLOWS_TRANSFER,
           {200: shapes.FLOWS_ANSWER}, GUESTS, shapes.FLOWS)
def transfer_flows(request):
    """Let other servers of the project continue the flows of this one.

    This one opens no further flow for a minute (ADR 0090). 409 ``flows`` if a
    guest lacks an element, or if it takes more than 20 s; the request may be
    sent again.
    """
    to = list(dict.fromkeys(key.lower() for key in request.body['to']))
    count = request.service.transfer_flows(request.found, [
        request.find('servers', key, policy.FLOWS_TRANSFER) for key in to])
    request.notify('flows.transfer', {'server_id': request.found.id, 'to': to,
                                      'flows': count})
    return {'flows': count}


@operation('PUT', '/configuration', policy.CONFIG_REPLACE, shapes.CHANGED,
           GUESTS, shapes.CONFIGURATION, parse=check.configuration)
def replace_configuration(request):
    """Replace the configuration of the running guest.

    At most 1 MiB. 400 ``bad-config`` has the guest's lines, and nothing
    changed. 409 ``owned-by-vnf`` for a VNF's guest (ADR 0072).
    """
    found = request.body['configuration']
    verdict = request.service.changing.replace(request.found, request.target,
                                               found)
    return _verdict(request, 'configuration.replace', verdict,
                    config_name=found.config_name)


@operation('GET', '/changes', policy.CHANGE_SHOW, {200: shapes.CHANGES},
           GUESTS, query=shapes.PAGE)
def list_changes(request):
    """List the newest changes, the newest first.

    The list has those without a verdict, and the last 8 accepted and 16 other
    ones.
    """
    page = pages.Page(flask.request)
    return page.of('changes', history.changes(
        request.service.store, request.found.state_key), 'number')


@operation('GET', '/changes/{number}', policy.CHANGE_SHOW,
           {200: shapes.CHANGE}, GUESTS)
def show_change(request):
    """Show a change.

    ``error`` is the guest's own, or of the table of outcomes.
    """
    return {'change': history.change(
        request.service.store, request.found.state_key,
        request.path['number'])}


@operation('GET', '/desired-state', policy.STATE_SHOW, {200: shapes.STATE},
           GUESTS, query=('project_id', 'secrets'))
def show_desired_state(request):
    """Show desired state.

    The answer has the newest change's number, and the last value of each
    handler, in order of its last write, to be written again after the
    configuration was installed. A configuration that replaced user_data,
    writes included, comes with it: ``replaces`` has the SHA-256 of that
    user_data in base64, as Nova stores it.
    """
    return _state(request,
                  request.service.store.read(request.found.state_key))


@operation('POST', '/desired-state', policy.STATE_RESTORE, shapes.CHANGED,
           GUESTS, shapes.REVISION_BODY)
def restore_desired_state(request):
    """Restore values and configuration of an earlier revision.

    This makes a new revision. The last 8 are kept, fewer if those of
    the project need more than half of its quota.
    """
    revision = int(request.body['revision'])
    verdict = request.service.changing.restore(request.found, request.target,
                                               revision)
    return _verdict(request, 'desired_state.restore', verdict,
                    restored=revision)


@operation('DELETE', '/desired-state', policy.STATE_DELETE, {204: None},
           GUESTS)
def delete_desired_state(request):
    """Forget the changes.

    A state to which user_data refers is as it was made.
    """
    key = request.found.state_key
    request.service.store.reset(key)
    return _deleted(request, key)


@operation('POST', '/states', policy.STATE_CREATE, {201: shapes.STATE_ID},
           body=shapes.STATE_BODY, parse=check.configuration)
def create_state(request):
    """Make a state of the caller's project for user_data to refer to.

    The service chooses the id.
    """
    project_id = request.context.project_id
    state_id = request.service.store.create(
        project_id, *_wanted(request, project_id))
    request.notify('desired_state.create', {'state_id': state_id})
    return {'id': state_id}, 201


@operation('PUT', '/states/{id}', policy.STATE_CREATE, {200: shapes.REBASED},
           'states', shapes.REBASE, parse=check.configuration)
def rebase_state(request):
    """Give a state another configuration; it keeps its writes.

    With ``keep`` it keeps those of the named handlers only. ``changed`` is
    false if the state was so already.
    """
    keep, state = request.body.get('keep'), request.found
    changed = request.service.store.rebase(
        state.key, *_wanted(request, state.project_id),
        None if keep is None else set(keep))
    request.notify('desired_state.update', {'state_id': request.target.id})
    return {'id': request.target.id, 'changed': changed}


@operation('GET', '/states/{id}', policy.STATE_SHOW, {200: shapes.STATE},
           'states', query=('project_id', 'secrets'))
def show_state(request):
    """Show a state, as ``desired-state``, with its project.

    A service names the project of the server by ``project_id``.
    """
    return {**_state(request, request.found),
            'project_id': request.found.project_id}


@operation('DELETE', '/states/{id}', policy.STATE_DELETE, {204: None},
           'states', query=('project_id',))
def delete_state(request):
    """Forget a state."""
    request.service.store.delete(request.found.key)
    return _deleted(request, request.found.key)


def _started(state_id, body):
    """A server without a reference starts with its own state."""
    is_own = state_id == body['server_id'].lower()
    return 'servers' if is_own else 'states'


@operation('POST', '/states/{id}/starts', policy.STATE_START,
           {200: shapes.answer()}, _started, shapes.START)
def start_state(request):
    """Note for nova-compute that a guest starts with a state.

    Changes without a verdict are lost. 409 ``outdated``: there is a newer
    state.
    """
    body, found = request.body, request.found
    server_id = body['server_id'].lower()
    seen = states.State(int(body['revision']), number=int(body['number']))
    key = found.own_key if request.target.kind == 'servers' else found.key
    if not request.service.store.start(
            key, seen, body['incarnation'].lower(), server_id,
            body['project_id']):
        raise errors.ApiError(
            f'state {request.target.id}: there is a newer one',
            code='outdated', status=409)
    request.service.forget(server_id)
    return {}


@operation('GET', '/secrets', policy.SECRET_LIST,
           {200: shapes.paged('secrets', shapes.SECRET)},
           query=shapes.PAGE)
def list_secrets(request):
    """List secrets, without their values."""
    page = pages.Page(flask.request)
    return page.of('secrets', request.service.secrets.list(
        request.context.project_id), 'id')


@operation('POST', '/secrets', policy.SECRET_CREATE,
           {201: shapes.answer(secret=shapes.SECRET)},
           body=shapes.SECRET_BODY, parse=check.secret)
def create_secret(request):
    """Make a secret.

    The value has at most 4,096 bytes; ``reference`` is
    ``clickos-secret:UUID``.
    """
    made = request.service.secrets.create(
        request.context.project_id, request.body['name'],
        request.body['value'])
    request.notify('secret.create', {'secret_id': made['id']})
    return {'secret': made}, 201


@operation('GET', '/secrets/{id}', policy.SECRET_SHOW,
           {200: shapes.answer(secret=shapes.SECRET)}, 'secrets')
def show_secret(request):
    """Show a secret, without its value."""
    return {'secret': request.found}


@operation('DELETE', '/secrets/{id}', policy.SECRET_DELETE, {204: None},
           'secrets')
def delete_secret(request):
    """Delete a secret.

    409 ``in-use`` while a state refers to it.
    """
    request.service.secrets.delete(request.context.project_id,
                                   request.target.id)
    request.notify('secret.delete', {'secret_id': request.target.id})
    return '', 204


@operation('PUT', '/ports/{id}/roles', policy.PORT_ROLES,
           {200: shapes.ROLES}, 'ports', shapes.ROLES)
def set_port_roles(request):
    """Let a port answer as a DHCP server or relay, or end that.

    The roles are ``["dhcp-server"]`` or an empty list. 403 on a network of
    another project, by the rule ``clickos:port:set_roles``; 409
    ``port-in-use`` if a server has the port.
    """
    return {'roles': request.service.port_roles.set(
        request.context, request.found, request.body['roles'])}


@operation('GET', '/catalog', policy.CATALOG_SHOW, {200: shapes.PACKAGES},
           query=shapes.PAGE)
def list_catalog(request):
    """List the packages of the operator's catalog, for every project.

    They are the files ``*.csar`` of ``[clickos_api] catalog_path``, at most
    200. A damaged file has no product, and the reason as description.
    """
    page = pages.Page(flask.request)
    return page.of('packages', request.service.catalog.list(), 'name')


@operation('GET', '/catalog/{package}', policy.CATALOG_SHOW,
           {200: shapes.PACKAGE})
def show_package(request):
    """Get a package of the catalog, at most 4 MiB as base64.

    404 ``no-such-package``. The user gives the package a VNFD id of its own
    (``clickos_client.catalog.with_fresh_id``).
    """
    found = request.service.catalog.package(request.path['package'])
    answer = flask.Response(found.pieces(), mimetype='application/json')
    answer.content_length = found.length
    answer.call_on_close(found.file.close)
    return answer


@operation('GET', '/chains/{id}', policy.CHAIN_SHOW, {200: shapes.CHAIN},
           'chains')
def show_chain(request):
    """Show the counters of a port chain of networking-sfc.

    The chain has ``packets``, ``bytes``, ``dropped`` and ``looped``, as do
    its ``hops``, in the order of ``port_pair_groups``, with ``pairs`` and
    ``live_pairs``. 409 ``not-active`` if the switch of its host does not have
    the chain; 503 ``busy`` while all waiting threads are in use.
    """
    return {'chain': request.service.chains.counters(request.found)}


@operation('GET', '/chains/{id}/fusion', policy.CHAIN_SHOW,
           {200: shapes.FUSION}, 'fusions')
def show_fusion(request):
    """Show which guest has the hops of a fused chain.

    404 ``not-fused``.
    """
    return {'fusion': request.service.fusing.show(request.found)}


@operation('PUT', '/chains/{id}/fusion', policy.CHAIN_FUSE,
           {200: shapes.FUSION}, 'chains', shapes.FUSE, parse=check.hops)
def fuse_chain(request):
    """Let one guest answer for all hops of a chain.

    The hops are of one project. The server has their elements with the prefix
    ``name/`` (ADR 0081), and gets the values of all hops. 409 ``fused`` if a
    hop is in a fused chain already, 409 ``shares`` if it has shares of limits
    (ADR 0117); 503 ``busy`` if a hop changes meanwhile.
    """
    hops = request.body['hops']
    servers = [request.find('servers', key, policy.CHAIN_FUSE) for key in (
        request.body['server'].lower(), *(key for _, key, _ in hops))]
    return {'fusion': request.service.fusing.fuse(
        request.context, request.found, servers, hops)}


@operation('DELETE', '/chains/{id}/fusion', policy.CHAIN_FUSE, {204: None},
           'fusions')
def unfuse_chain(request):
    """Let the hops' own guests answer again."""
    request.service.fusing.unfuse(request.context, request.found)
    return '', 204


@operation('GET', '/limits/{id}', policy.LIMIT_SHOW, {200: shapes.SHARED},
           'limits')
def show_limits(request):
    """Show limits that guests share, and their use.

    ``shared`` is what the guests may have together, never more than the
    total. Of a rate, ``used`` counts a second. 404 ``no-such-limits``.
    """
    return {'limits': request.service.limits.show(request.found)}


@operation('PUT', '/limits/{id}', policy.LIMIT_SET, {200: shapes.SHARED},
           'limits', shapes.LIMITS, parse=check.shared_limits)
def set_limits(request):
    """Let servers of the project share limits, and no others any more.

    The id is the caller's choice, such as the id of a VNF. A limit is of the
    kind ``rate`` or ``quota``; ``handler`` is a ``share`` of each guest
    (ADR 0117). A server that is named no more gives its share back; one that
    does not answer has it until Nova has deleted it. 409 ``fused`` for a part
    of a fused chain, 409 ``shares`` if other limits divide a handler of a
    server; 413 ``over-quota`` if the project has too many limits.
    """
    servers = [request.find('servers', key, policy.LIMIT_SET)
               for key in request.body['servers']]
    found = request.service.limits.declare(
        request.found, request.body['limits'], servers)
    request.notify('limits.set', {'limits_id': request.target.id,
                                  'servers': request.body['servers']})
    return {'limits': found}


@operation('DELETE', '/limits/{id}', policy.LIMIT_SET, {204: None}, 'limits')
def delete_limits(request):
    """Divide limits no more; the guests keep their shares.

    Limits that are set again under the id count these shares.
    """
    request.service.limits.delete(request.found)
    request.notify('limits.delete', {'limits_id': request.target.id})
    return '', 204


def _value(read, found, max_age_s):
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


def _write(request, writes):
    verdict = request.service.changing.write(request.found, writes)
    return _verdict(request, 'handler.write', verdict,
                    handlers=[name for name, _ in writes])


def _verdict(request, event, verdict, **details):
    """Return 200 with the revision, or 202 with the change's address."""
    request.notify(event, verdict.told(event) | details)
    if verdict.revision is not None:
        return {'revision': verdict.revision, **{
            key: list(names) for key, names in (
                ('commands', verdict.commands), ('edits', verdict.edits))
            if names}}
    location = (f'{flask.request.script_root}/v1/servers/'
                f'{verdict.server_id}/changes/{verdict.number}')
    return ({'change': {'number': verdict.number, 'status': states.PENDING}},
            202, {'Location': location, 'Retry-After': '1'})


def _wanted(request, project_id):
    """Return configuration and writes; their secrets are the project's."""
    found = request.body['configuration']
    writes = states.merge([], request.body['writes'])
    request.service.secrets.of(project_id, writes)
    return {'config': found.config, 'config_name': found.config_name}, writes


def _state(request, found):
    """Return a state, with its secrets if a service wants them."""
    shown = {'revision': found.revision, 'number': found.number,
             'writes': found.writes}
    if found.configuration:
        shown['configuration'] = found.configuration
    if request.query.get('secrets') == 'true':
        shown['secrets'] = request.service.secrets_of(request.context, found)
    return shown


def _deleted(request, key):
    LOG.info('State %s: forgotten', keys.name(key))
    request.notify('desired_state.delete', {'state_id': keys.name(key)})
    return '', 204

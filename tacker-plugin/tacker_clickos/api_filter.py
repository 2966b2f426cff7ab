# SPDX-License-Identifier: Apache-2.0
"""Paste filter before Tacker's APIs: what of a member's request gets there.

It passes on only the routes of routes.py. It refuses URLs the operator does
not list and parameters that name code (request_body.py), and packages that
reach beyond themselves (package/). It answers 404 to objects of others
(owned.py), and asks Tacker's policy before it reads a body (policy.py).
Tacker 16 stores only text as metadata and leaves a row locked after anything
else, so metadata.py makes it text.
Tacker answers 500 to a second VNF of one name; the filter makes it a 409. It
changes the package of a VNF itself (package_change.py), and the ids of VNFDs
into those that Tacker stores (vnfd_ids.py). It refuses operations
that cannot succeed (early.py), and mends what Tacker says of failed ones
(decided.py).
Tacker leaves sessions open that hold a connection to the database until the
garbage collector comes; the filter ends them with the request.
"""

import contextlib
import functools
import http
import json
import re
import tempfile

import eventlet
from eventlet import wsgi
from tacker.db import api as db_api
import webob
import webob.dec

from tacker_clickos import connections
from tacker_clickos import decided
from tacker_clickos import early
from tacker_clickos import exception
from tacker_clickos import metadata
from tacker_clickos import owned
from tacker_clickos.package import archive
from tacker_clickos.package import bounded_review
from tacker_clickos.package import fair_queue
from tacker_clickos import package_change
from tacker_clickos import policy
from tacker_clickos import request_body
from tacker_clickos import routes
from tacker_clickos import stock
from tacker_clickos import tacker_db
from tacker_clickos import vnfd_ids
from tacker_clickos import vnfds

_IN_MEMORY = 256 * 1024
_JSON = 'application/json'
#: Seconds in which a body has to come. Tacker's server waits for a client
#: without end, and the project's place in the queue would wait with it.
_TAKE_S = 300
#: Seconds in which the rest of a body may come that nothing needs, with room
#: for it and without.
_REST_S, _REST_OF_EXCESS_S = 10, 1
#: Bytes of the bodies of a project, and of all, until Tacker has answered.
#: Python needs up to eight times as many for what it reads in them.
OF_PROJECT, OF_ALL = 8 << 20, 64 << 20
#: A body counts as this many at least. Each holds one of Tacker's 1,000
#: threads, while its client is slow, or the cloud that it is about.
LEAST = 128 << 10
_bodies = fair_queue.Room(OF_PROJECT, OF_ALL, ' bytes')
_DECIDES = re.compile(
    r'/vnf_lcm_op_occs/([0-9a-fA-F-]+)/(retry|rollback|fail)')
_LISTS = {('packages', '/vnf_packages'),
          *(('lifecycle', path) for path in (
              '/vnf_instances', '/vnf_lcm_op_occs', '/subscriptions'))}


def factory(global_conf, api, **local_conf):
    """Return the filter, for api-paste.ini.

    :param api: which of routes.APIS stands behind it
    """
    return functools.partial(ApiFilter, api=api)


class ApiFilter(object):
    """Judges every request; Tacker gets the very bytes that were judged."""

    def __init__(self, application, api):
        self._application = application
        self._api = api
        self._routes = routes.compiled(api)

    @webob.dec.wsgify
    def __call__(self, request):
        try:
            return self._judged(request)
        except routes.NotServed as refused:
            return _problem(refused.status, str(refused), refused.headers)
        except exception.ClickOSError as refused:
            return _problem(refused.http_status, str(refused),
                            refused.http_headers)
        finally:
            end_body(request)

    def _judged(self, request):
        """Return Tacker's answer to a request that may reach it."""
        routes.require(self._routes, request.environ)
        _judge_ids(self._api, request)
        with _room(self._api, request):
            if request.is_body_readable:
                _judge(self._api, request)
                _take_package(self._api, request)
            _take_query(self._api, request)
            with _sessions(self._api, request), _counted(self._api, request):
                return vnfd_ids.give(request.environ.get('tacker.context'),
                                     self._answer(request))

    def _answer(self, request):
        if _creates_vnf(self._api, request):
            return _created(self._application, request)
        found = _decides(self._api, request)
        if found:
            with tacker_db.claimed(found[1]):
                return self._decided(request, *found.groups())
        return decided.answer(self._application, self._api, request)

    def _decided(self, request, operation_id, how):
        if how == 'fail':
            return decided.answer(self._application, self._api, request)
        return _begun(self._application, request, operation_id, how)


@contextlib.contextmanager
def _sessions(api, request):
    """End Tacker's sessions with the request.

    For a list Tacker makes the query in a reader and runs it afterwards. In
    a reader around both, the query has that one's session.
    """
    context = request.environ.get('tacker.context')
    if context is None:
        yield
    elif request.method == 'GET' and (api, request.path_info) in _LISTS:
        with db_api.context_manager.reader.using(context):
            yield
    else:
        with contextlib.closing(context.session):
            yield


def _counted(api, request):
    """Count an operation that Tacker begins."""
    context = request.environ.get('tacker.context')
    if context is None or (api, request.method) != ('lifecycle', 'POST'):
        return contextlib.nullcontext()
    return early.begun(context, request.path_info)


def _take_package(api, request):
    """Change the package of a VNF, if a request asks for it."""
    if (api, request.method) != ('lifecycle', 'PATCH') or not request.body:
        return
    body = json.loads(request.body)
    if {'vnfdId', 'vnfPkgId'} & set(body):
        vnf_id = request.path_info.rstrip('/').rpartition('/')[2]
        package_change.take(request.environ['tacker.context'], vnf_id, body)
        request.body = json.dumps(body).encode()


def _take_query(api, request):
    """Change the VNFD ids of a query into those that Tacker has."""
    context = request.environ.get('tacker.context')
    if context is not None and request.method == 'GET':
        request.query_string = vnfd_ids.take_query(context,
                                                   request.query_string)


def _judge_ids(api, request):
    """Refuse an object of another project, and what a caller may not do.

    Without a context Tacker does. A retry has no body.
    """
    context = request.environ.get('tacker.context')
    if context is not None:
        owned.require_path(context, request.path_info)
        policy.require(context, api, request.method, request.path_info)
        if (api, request.method) == ('lifecycle', 'POST'):
            early.require_few(context, request.path_info)


def _judge(api, request):
    if _is_package(api, request):
        _judge_package(request)
    else:
        _judge_json(api, request)


def _is_package(api, request):
    return (api, request.method) == ('packages', 'PUT')


def _creates_vnf(api, request):
    return ((api, request.method) == ('lifecycle', 'POST')
            and request.path_info.rstrip('/') == '/vnf_instances')


def _decides(api, request):
    """Return a match of a failed operation and what becomes of it, or None."""
    if (api, request.method) != ('lifecycle', 'POST'):
        return None
    return _DECIDES.fullmatch(request.path_info.rstrip('/'))


def _begun(application, request, operation_id, how):
    """Return Tacker's answer to a retry or rollback, which shows from now on.
    """
    failed_at = tacker_db.entered(operation_id)
    response = request.get_response(application)
    if failed_at and response.status_int == http.HTTPStatus.ACCEPTED:
        begin = tacker_db.begin_retry if how == 'retry' \
            else tacker_db.begin_rollback
        begin(operation_id, failed_at)
    return response


def _created(application, request):
    """Return Tacker's answer, or a 409 if it failed at a name in use."""
    try:
        name = json.loads(request.body).get('vnfInstanceName')
    except ValueError:    # no body; Tacker says so
        name = None
    response = request.get_response(application)
    if response.status_int != 500 or not isinstance(name, str):
        return response
    project_id = request.environ['tacker.context'].project_id
    holder = tacker_db.vnf_with_name(project_id, name)
    if holder is None:
        return response
    return _problem(409, 'vnfInstanceName: VNF %s of this project has the name'
                    ' %r; choose another name' % (holder, name))


def _problem(status, detail, headers=()):
    response = webob.Response(
        status=status, content_type='application/problem+json',
        charset='utf-8')
    response.json_body = {'title': response.status[4:], 'status': status,
                          'detail': detail}
    response.headers.update(headers)
    return response


def _judge_json(api, request):
    with tempfile.SpooledTemporaryFile(_IN_MEMORY) as taken:
        _take(request, taken, request_body.MAX_BODY)
        raw = taken.read()
    request.body = _taken(api, request, raw) if raw else raw
    # Tacker takes any type as JSON, but its router would parse a form first,
    # and take another method from it.
    request.content_type = _JSON


def _taken(api, request, raw):
    """Return what Tacker gets of a body."""
    body = request_body.parse(raw, _may_bring_scripts(request))
    context = request.environ.get('tacker.context')
    if api == 'lifecycle' and context is not None:
        owned.require_vims(context, body)
        if request.method == 'POST':
            vnfd_ids.take(context, body)
        _judge_early(context, request, body)
    if (api, request.method) == ('lifecycle', 'PATCH'):
        metadata.make_storable(body)
    return json.dumps(body).encode()


@contextlib.contextmanager
def _room(api, request):
    """Keep room for a body from before it comes until Tacker has answered.

    Packages have a queue of their own.
    """
    if not request.is_body_readable or _is_package(api, request):
        yield
        return
    size = request.content_length
    if size is None or size > request_body.MAX_BODY:
        size = request_body.MAX_BODY
    with contextlib.ExitStack() as taken:
        try:
            taken.enter_context(_bodies.taken(
                _project(request), max(size, LEAST)))
        except fair_queue.Full as full:
            raise full.refusal('bodies of requests')
        yield


def _judge_early(context, request, body):
    if request.method == 'POST':
        early.judge(context, request.path_info, body)
    if request.method == 'PATCH':
        early.judge_update(context, request.path_info, body)


def _judge_package(request):
    with contextlib.ExitStack() as undo:
        taken = undo.enter_context(tempfile.TemporaryFile())
        with bounded_review.upload(_project(request)) as place:
            size = _take(request, taken, archive.MAX_PACKAGE)
            vnfd_id = bounded_review.require(
                _project(request), taken, place, _may_bring_scripts(request))
        vnfds.release(_owner(request), vnfd_id)
        taken.seek(0)
        request.body_file = taken
        request.content_length = size
        undo.pop_all()    # Tacker reads and closes it


def _owner(request):
    """Return the project of the package that a request has the content of."""
    return vnfds.owner(request.path_info.split('/')[2])


def _may_bring_scripts(request):
    context = request.environ.get('tacker.context')
    return (context is not None and stock.is_allowed()
            and policy.may_bring_scripts(context))


def _project(request):
    context = request.environ.get('tacker.context')
    return context and context.project_id


def _take(request, taken, limit):
    """Take the body, whose length may be unsaid or a lie; return its size."""
    left = limit + 1
    # It ends the wait of a green thread.
    with eventlet.Timeout(_TAKE_S, exception.RequestRefused(
            reason='the body did not come within %g s' % _TAKE_S)):
        while left and (piece := _piece(request, min(left, 65536))):
            taken.write(piece)
            left -= len(piece)
        if not left and request.content_length is not None:
            _drop(request.body_file)    # a client that sends reads no answer
    if not left:
        raise exception.RequestRefused(
            reason='the body is longer than the limit of %d bytes' % limit)
    taken.seek(0)
    return limit + 1 - left


def _piece(request, size):
    """Read a piece of a body, in turn with other requests."""
    eventlet.sleep(0)
    try:
        return request.body_file.read(size)
    except (OSError, wsgi.ChunkReadError) as error:
        raise exception.RequestRefused(
            reason='the body did not come as a whole: %s' % error)


def end_body(request):
    """Wait a moment for the rest of a body, which nothing needs.

    Before the next request of a connection Tacker's server reads the rest,
    and waits for it without end. It closes a connection whose rest cannot be
    read. May be called twice.
    """
    source = request.environ.get('eventlet.input')
    if source is None or isinstance(source.rfile, _Ended) or not (
            source.chunked_input
            or source.position < (source.content_length or 0)):
        return
    # A client may send its body after "100 Continue" only.
    if not getattr(source, 'should_send_hundred_continue', False):
        with contextlib.ExitStack() as held:
            rest_s = _REST_S
            try:
                held.enter_context(_bodies.taken(_project(request), LEAST))
            except fair_queue.Full:
                rest_s = _REST_OF_EXCESS_S
            held.enter_context(eventlet.Timeout(rest_s, False))
            held.enter_context(request.environ.get(
                connections.WAITING, contextlib.nullcontext)())
            _drop(source)
    source.rfile = _Ended()


def _drop(source):
    """Read a body to its end, in turn with other requests."""
    # The client is gone, or what comes is no body.
    with contextlib.suppress(OSError, wsgi.ChunkReadError):
        while source.read(65536):
            eventlet.sleep(0)


class _Ended:
    """The rest of a body that nothing waits for."""

    def read(self, _size=None):
        raise wsgi.ChunkReadError('the rest of a body nothing needs')

    readline = read

# SPDX-License-Identifier: Apache-2.0
"""Outlives short outages of Nova, Neutron, Glance, Keystone, clickos-api.

Each request of the drivers passes :class:`Session`, which repeats those that
may reach their service twice. A request that makes something is repeated by
:func:`once`, after a look for what a lost answer has made. :func:`outlived`
repeats a whole step of an operation.
"""

import contextlib
import functools
import http
import threading

from keystoneauth1 import exceptions as ks_exceptions
from keystoneauth1 import session as ks_session
from openstack import exceptions as sdk_exceptions
from oslo_config import cfg
from oslo_db import exception as db_exc
from oslo_log import log as logging
from tacker import context as tacker_context
import tenacity

from tacker_clickos import exception
from tacker_clickos import reasons
from tacker_clickos import tacker_db

LOG = logging.getLogger(__name__)

_NAMES = {'compute': 'Nova', 'network': 'Neutron', 'image': 'Glance',
          'identity': 'Keystone', 'clickos': 'clickos-api',
          'nfv-orchestration': 'Tacker'}
#: Methods that may reach a service twice (RFC 9110, 9.2.2).
_REPEATABLE = ('GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE')
#: A POST that may: Keystone only makes another token.
_TOKENS = '/auth/tokens'
_FAILED = (http.HTTPStatus.INTERNAL_SERVER_ERROR, http.HTTPStatus.BAD_GATEWAY,
           http.HTTPStatus.SERVICE_UNAVAILABLE,
           http.HTTPStatus.GATEWAY_TIMEOUT)
#: Their texts say where a service is, and tenants read what became of them.
_LOST = (ks_exceptions.ConnectionError,)
#: What another try of a step may not meet again.
_PASSING = (exception.Outage, db_exc.DBConnectionError)
#: Seconds between two tries, doubled each time.
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.1, 2
_LONGEST_STEP_PAUSE_S = 8

_thread = threading.local()


@contextlib.contextmanager
def ignored():
    """Repeat nothing in this thread: the watcher's next round is a repeat."""
    before = getattr(_thread, 'patience_s', None)
    _thread.patience_s = 0
    try:
        yield
    finally:
        _thread.patience_s = before


def patience_s():
    """Return how many seconds of an outage this thread waits for."""
    of_thread = getattr(_thread, 'patience_s', None)
    return cfg.CONF.clickos.outage_timeout if of_thread is None else of_thread


def _tries(longest_pause_s, *errors, least=1):
    """Return tenacity's loop.

    :param errors: exceptions after which it tries again
    :param least: number of tries, also if the first one takes very long
    """
    least = least if patience_s() else 1
    return tenacity.Retrying(
        retry=tenacity.retry_if_exception_type(errors),
        stop=tenacity.stop_all(tenacity.stop_after_delay(patience_s()),
                               tenacity.stop_after_attempt(least)),
        wait=tenacity.wait_exponential(_FIRST_PAUSE_S, longest_pause_s),
        reraise=True)


class _Again(Exception):
    """A request may be repeated; outcome is its exception or response."""

    def __init__(self, outcome):
        super().__init__()
        self.outcome = outcome


class Session(ks_session.Session):
    """keystoneauth's session, which repeats what may be repeated."""

    def request(self, url, method, **options):
        """Send a request, again as long as its service is away.

        :raises: ServiceAway when the time is over; Unanswered at once for a
            request that may have had an effect
        """
        send = functools.partial(self._send, super().request, url, method,
                                 options)
        try:
            return _tries(_LONGEST_PAUSE_S, _Again)(send)
        except _Again as over:
            return _answer(over.outcome, exception.ServiceAway, url, options)

    @staticmethod
    def _send(request, url, method, options):
        try:
            response = request(url, method, **{**options, 'raise_exc': False})
        except _LOST as error:
            failure = error
        else:
            if response.status_code not in _FAILED:
                return _raised(response, options)
            failure = response
        if method in _REPEATABLE or url.endswith(_TOKENS):
            raise _Again(failure)
        return _answer(failure, exception.Unanswered, url, options)


def _raised(response, options):
    """Return a response, or raise its error if the caller wants that."""
    if options.get('raise_exc', True) and response.status_code >= 400:
        raise ks_exceptions.from_response(response, response.request.method,
                                          response.url)
    return response


def _answer(failure, kind, url, options):
    """Raise the error of a failed request, or return clickos-api's own words.

    :param failure: an exception or a response
    :param kind: ServiceAway or Unanswered
    """
    filter_ = options.get('endpoint_filter') or {}
    service = filter_.get('service_type')
    if not isinstance(failure, Exception) and service == 'clickos' \
            and _has_code(failure):
        return _raised(failure, options)
    raise kind(service=_NAMES.get(
        'identity' if _TOKENS in url else service, 'a service of the cloud'),
        reason=_reason(failure))


def _has_code(response):
    """Return whether clickos-api has answered itself: its codes are words.

    A server in front of it answers with a number, or with a page.
    """
    try:
        return isinstance(response.json()['error']['code'], str)
    except (ValueError, KeyError, TypeError):
        return False


def _reason(failure):
    if not isinstance(failure, Exception):
        return 'answers with HTTP %d' % failure.status_code
    if isinstance(failure, ks_exceptions.ConnectTimeout):
        return 'gives no answer within %d s' % cfg.CONF.clickos.request_timeout
    if isinstance(failure, ks_exceptions.SSLError):
        return 'cannot be reached by TLS'
    return 'cannot be reached'


def once(find, make):
    """Make one thing, though an answer gets lost.

    :param find: returns what an earlier request has made, or None
    :param make: makes it, with one request
    :returns: what one of them returned
    """
    tries = _tries(_LONGEST_PAUSE_S, exception.Outage, least=2)
    for attempt in tries:
        with attempt:
            if attempt.retry_state.attempt_number == 1:
                return make()
            return _found_or_made(find, make)
    raise AssertionError('tenacity raises the last error')


def _found_or_made(find, make):
    found = find()
    if found is not None:
        return found
    try:
        return make()
    except sdk_exceptions.HttpException:
        # The lost request came through after the look.
        found = find()
        if found is None:
            raise
        return found


def _release(*arguments):
    """Hold no connection to the database while other services work."""
    for each in arguments:
        if isinstance(each, tacker_context.Context):
            tacker_db.release(each)


@contextlib.contextmanager
def _without_places():
    """Raise refusals with the words of the service alone.

    The text of the SDK's error names the address of the service, and Tacker
    shows the tenant why an operation failed. Of errors that nothing here
    expects, the log has the whole text.
    """
    try:
        yield
    except sdk_exceptions.HttpException as error:
        raise exception.ServiceRefused(
            status=error.status_code or 0,
            reason=error.details or 'no reason given') from error
    except (exception.ClickOSError, *_PASSING):
        raise
    except Exception as error:
        LOG.exception('A step of an operation failed')
        raise exception.ClickOSError(
            reason=reasons.for_tenants(error)) from error


def outlived(step):
    """Decorate a step of an operation: repeat it after an outage.

    Each such step begins where an interrupted one has stopped.
    """
    @functools.wraps(step)
    def repeated(*arguments, **named):
        for attempt in _tries(_LONGEST_STEP_PAUSE_S, *_PASSING, least=2):
            with attempt:
                try:
                    _release(*arguments, *named.values())
                    with _without_places():
                        return step(*arguments, **named)
                except _PASSING as error:
                    LOG.warning('%s: interrupted: %s', step.__name__, error)
                    raise
        raise AssertionError('tenacity raises the last error')
    return repeated

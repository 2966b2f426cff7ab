# SPDX-License-Identifier: Apache-2.0
"""clickos-api of a VIM, with errors as Tacker shows them."""

import contextlib
import http
import time

from clickos_client import api
from clickos_client import outcomes
from keystoneauth1 import exceptions as ka_exceptions
from oslo_log import log as logging

from tacker_clickos import exception
from tacker_clickos import outages

LOG = logging.getLogger(__name__)

_MAX_CODE = 64
_NO_STATE, _NOT_RECEIVED = 'no-such-state', 'not-received'
_MAX_MESSAGE = 4000
#: What clickos-api answers while a service that it needs is away.
_NO_VERDICT = (http.HTTPStatus.INTERNAL_SERVER_ERROR,
               http.HTTPStatus.SERVICE_UNAVAILABLE)
#: Seconds in which a write without an answer is repeated, and between two.
_PATIENCE_S = 120
_LIMITS_S = 30
_PAUSE_S = 1


class Client(object):
    """Handlers and desired state of the servers of one VIM.

    :param connection: openstacksdk connection of the VIM
    """

    def __init__(self, connection):
        self._client = api.Client(
            connection.session,
            region_name=connection.config.get_region_name() or None,
            user_agent='tacker-clickos')

    def write(self, server_id, writes, patience_s=_PATIENCE_S):
        """Write handlers, all or none; return the new revision.

        A request without a verdict may take effect later, or did not reach
        the guest. So it is repeated until one has a verdict. Values are
        whole: a repetition is harmless.

        :param writes: [[handler, value]]
        :param patience_s: seconds in which it is repeated
        :raises: HandlerRefused, ApiUnavailable
        """
        return _repeated(
            lambda: self._client.write_many(server_id, writes), patience_s,
            'A write of server %s' % server_id)

    def start_details(self, server_id):
        """Return why starts of a server's guest failed, by request id.

        :raises: HandlerRefused, ApiUnavailable
        """
        with _translated():
            found = self._client.start_failures(server_id)
        return {key: '; '.join(reasons) for key, reasons in found.items()}

    def read(self, server_id, handler):
        """Return the value of a handler.

        :raises: HandlerRefused, ApiUnavailable
        """
        with _translated():
            return self._client.read(server_id, handler)

    def transfer_flows(self, server_id, to):
        """Let guests go on with the flows of one that goes; return how many.

        :param to: the servers of the other guests
        :raises: HandlerRefused, ApiUnavailable
        """
        with _translated():
            return self._client.transfer_flows(server_id, to)

    def desired_writes(self, server_id):
        """Return every [[handler, value]] that is in force.

        :raises: HandlerRefused, ApiUnavailable
        """
        with _translated():
            return self._client.desired_state(server_id)

    def set_limits(self, group, limits, server_ids):
        """Let guests share limits, and no others any more.

        :param group: the id of the group
        :param limits: [{'name', 'kind', 'handler', 'total'}]
        :raises: HandlerRefused, ApiUnavailable
        """
        _repeated(
            lambda: self._client.set_limits(group, limits, server_ids),
            _LIMITS_S, 'The declaration of limits %s' % group)

    def delete_limits(self, group):
        """Forget limits of guests that are gone.

        clickos-api does it after a day, so a failure is only logged.
        """
        try:
            with _translated():
                self._client.delete_limits(group)
        except exception.ClickOSError as error:
            LOG.info('Limits %s are not deleted: %s', group, error)

    def create_state(self, configuration):
        """Make a guest's state; return its id.

        clickos-api removes a state without a guest after a day, such as one
        whose id got lost.

        :param configuration: document.Configuration
        :raises: HandlerRefused, ApiUnavailable
        """
        def make():
            with _translated():
                return self._client.create_state(configuration)
        return outages.once(lambda: None, make)

    def rebase_state(self, state_id, configuration, keep=None):
        """Give a guest's state another configuration.

        :param keep: handlers whose writes stay; None for all
        :returns: whether the state changed; None if there is none any more
        :raises: HandlerRefused, ApiUnavailable
        """
        try:
            with _translated():
                return self._client.rebase_state(state_id, configuration,
                                                 keep)
        except exception.HandlerRefused as error:
            if error.code != _NO_STATE:
                raise
            return None

    def set_port_roles(self, port_id, roles):
        """Give a port roles, of port_roles.ROLES.

        :raises: HandlerRefused, ApiUnavailable
        """
        with _translated():
            self._client.set_port_roles(port_id, roles)

    def delete_state(self, state_id):
        """Forget the state of a guest that is gone.

        clickos-api removes it after a day by itself, so a failure is only
        logged.
        """
        try:
            with _translated():
                self._client.delete_state(state_id)
        except exception.ClickOSError as error:
            LOG.info('State %s is not deleted: %s', state_id, error)


def _repeated(call, patience_s, what):
    """Call until there is a verdict; return the result.

    :param patience_s: seconds in which it is repeated
    """
    end_s = time.monotonic() + patience_s
    while True:
        try:
            with _translated():
                return call()
        except (exception.ApiUnavailable, exception.ServiceAway,
                exception.HandlerRefused) as error:
            if not _outcome_unknown(error):
                raise
            if time.monotonic() >= end_s:
                raise _unknown(error)
            LOG.info('%s is repeated: %s', what, error)
        time.sleep(_PAUSE_S)


def _unknown(error):
    """Return the error of a request that never got a verdict."""
    if error.outcome == outcomes.LOST:
        return error
    return exception.ApiUnavailable(reason='%s: %s' % (
        str(error).removeprefix('clickos-api: '),
        outcomes.TEXTS[outcomes.UNKNOWN]))


def _outcome_unknown(error):
    """True if the request has no verdict: another one may have one."""
    return getattr(error, 'status', None) in (None, *_NO_VERDICT) \
        or getattr(error, 'code', None) == _NOT_RECEIVED


@contextlib.contextmanager
def _translated():
    try:
        yield
    except api.ClickOSError as error:
        kind = (exception.HandlerAway if error.status in _NO_VERDICT
                else exception.HandlerRefused)
        raise kind(
            error.code[:_MAX_CODE], error.message[:_MAX_MESSAGE],
            error.status)
    except ka_exceptions.ClientException as error:
        raise exception.ApiUnavailable(reason=str(error)[:_MAX_MESSAGE])

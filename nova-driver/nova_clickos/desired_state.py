# SPDX-License-Identifier: Apache-2.0
"""What a tenant has changed since the server's first start.

clickos-api owns them (adr/0072). A guest that starts again without them would
filter by old rules, so whatever goes wrong here makes the start fail.
"""

import http

from clickos_client import document
from clickos_client import host_text
from clickos_client import secrets
from keystoneauth1 import exceptions as ks_exc
from keystoneauth1 import loading as ks_loading
from oslo_log import log as logging

from nova_clickos.conf import CONF
from nova_clickos import exception

LOG = logging.getLogger(__name__)

_GROUP = 'clickos'
#: Codes of clickos-api that tell of one guest's state, not of the service.
_OF_A_GUEST = ('no-secret-key', 'internal')
#: Characters of an error that a tenant reads.
_SHOWN = 120


class DesiredState:
    """Client of clickos-api, with the credentials of ``[clickos]``."""

    def __init__(self):
        self._adapter = None  # nova-compute starts before keystone may

    def fetch(self, server_id, project_id):
        """Ask what to repeat before a server takes packets again.

        :param server_id: UUID of the server.
        :param project_id: the server's; clickos-api gives no other's state.
        :returns: document.Desired
        :raises: GuestNotStarted
        """
        return _desired(self._get('/v1/servers/%s/desired-state' % server_id,
                                  project_id))

    def fetch_state(self, state_id, project_id):
        """Ask for the state that user_data refers to.

        :param project_id: the server's; a state of another is refused.
        :returns: document.Desired with a configuration
        :raises: GuestNotStarted
        """
        answer = self._get('/v1/states/%s' % state_id, project_id)
        desired = _desired(answer)
        if (desired.configuration is None
                or answer.json().get('project_id') != project_id):
            raise exception.GuestNotStarted(
                reason='user_data: state %s is not in the project of the '
                       'server' % state_id)
        return desired

    def confirm(self, state_id, server, desired, incarnation):
        """Report a start; its changes go to this guest from now on.

        :param server: the instance.
        :param desired: document.Desired that the guest has.
        :returns: False if the state is a newer one
        :raises: GuestNotStarted
        """
        answer = self._ask(
            'POST', '/v1/states/%s/starts' % state_id, (200, 409), json={
                'number': desired.number, 'revision': desired.revision,
                'incarnation': incarnation, 'server_id': server.uuid,
                'project_id': server.project_id})
        return answer.status_code == 200

    def _get(self, path, project_id):
        return self._ask('GET', path, params={'secrets': 'true',
                                              'project_id': project_id})

    def _ask(self, method, path, expected=(200,), **more):
        try:
            self._adapter = self._adapter or _load()
            # The answer may have secrets, which keystoneauth would log.
            answer = self._adapter.request(path, method, raise_exc=False,
                                           log=False, **more)
        except ks_exc.ClientException as e:
            # The tenant reads the fault of its server, and the text of this
            # error says where clickos-api and Keystone are.
            LOG.warning('clickos-api cannot be asked: %s', e)
            raise _failed('clickos-api cannot be asked (%s)'
                          % type(e).__name__, exception.ServiceUnavailable)
        if answer.status_code not in expected:
            raise _failed('clickos-api answered %d: %s'
                          % (answer.status_code, _told(answer)),
                          _kind(answer))
        return answer


def _kind(answer):
    """Return the exception for an answer that was not expected."""
    if not _may_pass(answer.status_code):
        return exception.GuestNotStarted
    return (exception.StateUnavailable if _code(answer) in _OF_A_GUEST
            else exception.ServiceUnavailable)


def _code(answer):
    """Return the code of clickos-api's error; None for one of its front."""
    try:
        return answer.json()['error']['code']
    except (ValueError, KeyError, TypeError):
        return None


def _told(answer):
    """Return what a tenant may read of an error.

    The page of a server in front of clickos-api may name hosts.
    """
    text = answer.text
    if not isinstance(_code(answer), str):
        LOG.warning('clickos-api: %d: %.1000r', answer.status_code, text)
        text = host_text.without_places(text)
    return text[:_SHOWN]


def _may_pass(status):
    """Return whether the same request may succeed later.

    All hosts ask as one project. So a site that boots may ask more often than
    a project may (429).
    """
    return status >= 500 or status == http.HTTPStatus.TOO_MANY_REQUESTS


def _load():
    auth = ks_loading.load_auth_from_conf_options(CONF, _GROUP)
    if auth is None:
        raise _failed('nova.conf has no [clickos] auth_type')
    session = ks_loading.load_session_from_conf_options(CONF, _GROUP,
                                                        auth=auth)
    return ks_loading.load_adapter_from_conf_options(
        CONF, _GROUP, session=session, auth=auth)


def _desired(answer):
    try:
        state = answer.json()
        writes = tuple((str(handler), str(value))
                       for handler, value in state['writes'])
        counts = {key: int(state.get(key, 0))
                  for key in ('revision', 'number')}
        counts['secrets'] = secrets.Secrets({
            str(name): str(value)
            for name, value in state.get('secrets', {}).items()})
        found = state.get('configuration')
        if not found:
            return document.Desired(writes, **counts)
        replaced = document.replacement(found['config'], found['config_name'])
        return document.Desired(writes, replaced, found.get('replaces'),
                                **counts)
    except (ValueError, KeyError, TypeError, AttributeError):
        raise _failed('clickos-api sent no list of writes')


def _failed(reason, kind=exception.GuestNotStarted):
    return kind(
        reason='not started with outdated handler values: %s' % reason)

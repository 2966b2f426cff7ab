# SPDX-License-Identifier: Apache-2.0
"""Adapters of keystoneauth with the user's token."""

from clickos_client import api
from django.conf import settings
from django.utils.translation import gettext as _
from keystoneauth1 import adapter as ks_adapter
from keystoneauth1 import exceptions as ks_exc
from keystoneauth1 import session as ks_session
from keystoneauth1 import token_endpoint
from openstack_dashboard.api import base

#: Longer than clickos-api waits for a guest.
TIMEOUT_S = 20
TACKER = 'nfv-orchestration'
_NAMES = {TACKER: 'Tacker'}


class _Token(token_endpoint.Token):
    """The token of a user, which knows its project."""

    def __init__(self, user):
        super().__init__(None, user.token.id)
        self._project_id = user.project_id

    def get_project_id(self, session, **kwargs):
        """Return the project that the token is for."""
        return self._project_id


class _Session(ks_session.Session):
    """Says which service does not answer, and not where it is.

    A page shows the text of an error, and the dashboard may use addresses
    that its users do not.
    """

    def __init__(self, service, *arguments, **options):
        super().__init__(*arguments, **options)
        self._service = service

    def request(self, *arguments, **options):
        """Send a request.

        :raises: what keystoneauth raises, without addresses
        """
        try:
            return super().request(*arguments, **options)
        except ks_exc.ConnectTimeout:
            text = _('%(service)s does not answer within %(time)d s')
        except ks_exc.ConnectionError:
            text = _('%(service)s cannot be reached')
        raise ks_exc.ConnectFailure(message=text % {
            'service': self._service, 'time': TIMEOUT_S})


def adapter(request, service_type):
    """Return an adapter for a service of the user's catalog."""
    return ks_adapter.Adapter(
        session(request, _NAMES[service_type]), raise_exc=False,
        endpoint_override=base.url_for(request, service_type))


def clickos(request):
    """Return the client of clickos-api."""
    return api.Client(
        session(request, 'clickos-api'),
        endpoint_override=base.url_for(request, api.SERVICE_TYPE))


def session(request, service):
    """Return a session with the user's token.

    :param service: its name for people
    """
    auth = _Token(request.user)
    verify = (not settings.OPENSTACK_SSL_NO_VERIFY
              and (settings.OPENSTACK_SSL_CACERT or True))
    return _Session(service, auth, verify=verify, timeout=TIMEOUT_S,
                    app_name='clickos-dashboard')

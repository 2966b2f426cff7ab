# SPDX-License-Identifier: Apache-2.0
"""Adapters of keystoneauth with the user's token."""

from clickos_client import api
from django.conf import settings
from keystoneauth1 import adapter as ks_adapter
from keystoneauth1 import session as ks_session
from keystoneauth1 import token_endpoint
from openstack_dashboard.api import base

#: Longer than clickos-api waits for a guest.
TIMEOUT_S = 20
TACKER = 'nfv-orchestration'


class _Token(token_endpoint.Token):
    """The token of a user, which knows its project."""

    def __init__(self, user):
        super().__init__(None, user.token.id)
        self._project_id = user.project_id

    def get_project_id(self, session, **kwargs):
        """Return the project that the token is for."""
        return self._project_id


def adapter(request, service_type):
    """Return an adapter for a service of the user's catalog."""
    return ks_adapter.Adapter(
        session(request), raise_exc=False,
        endpoint_override=base.url_for(request, service_type))


def clickos(request):
    """Return the client of clickos-api."""
    return api.Client(
        session(request),
        endpoint_override=base.url_for(request, api.SERVICE_TYPE))


def session(request):
    """Return a session with the user's token."""
    auth = _Token(request.user)
    verify = (not settings.OPENSTACK_SSL_NO_VERIFY
              and (settings.OPENSTACK_SSL_CACERT or True))
    return ks_session.Session(auth, verify=verify, timeout=TIMEOUT_S,
                              app_name='clickos-dashboard')

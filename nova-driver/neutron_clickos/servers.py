# SPDX-License-Identifier: Apache-2.0
"""Asks Nova, with the credentials of Neutron's section ``[nova]``.

A member can make Neutron ask. So a question holds no transaction, a project
asks one at a time, and all projects together ask a few.
"""

import collections
import contextlib
import threading

from keystoneauth1 import adapter
from keystoneauth1 import exceptions
from keystoneauth1 import loading
from oslo_config import cfg
from oslo_log import log as logging
from oslo_utils import uuidutils

LOG = logging.getLogger(__name__)

#: Seconds that Neutron waits for each answer of Nova or Keystone.
_TIMEOUT_S = 2
#: Questions at the same time; each holds a worker of Neutron's API.
MOST_QUESTIONS = 4
#: Servers that are remembered.
MOST_KNOWN = 1024


class Gone:
    """The servers that Nova does not know; it never uses an id again.

    :param connect: returns a keystoneauth adapter for Nova
    """

    def __init__(self, connect=None):
        self._connect = connect or _client
        self._client = None
        self._lock = threading.Lock()
        self._known = collections.OrderedDict()
        self._asking = set()
        self._told = None

    def __contains__(self, server_id):
        """Return whether an earlier look() found that a server is gone."""
        with self._lock:
            return server_id in self._known

    def look(self, server_id, project_id):
        """Ask Nova about a server, and remember it if it is gone.

        :param server_id: as a port names it
        :param project_id: whose request it is; it asks nothing while its
            last question waits
        """
        if not uuidutils.is_uuid_like(server_id) or server_id in self:
            return
        with self._turn(project_id) as has_turn:
            if has_turn and self._is_gone(server_id):
                self._remember(server_id)

    @contextlib.contextmanager
    def _turn(self, project_id):
        with self._lock:
            has_turn = len(self._asking) < MOST_QUESTIONS \
                and project_id not in self._asking
            if has_turn:
                self._asking.add(project_id)
        try:
            yield has_turn
        finally:
            if has_turn:
                with self._lock:
                    self._asking.remove(project_id)

    def _remember(self, server_id):
        with self._lock:
            self._known[server_id] = True
            if len(self._known) > MOST_KNOWN:
                self._known.popitem(last=False)

    def _is_gone(self, server_id):
        try:
            # One session for all: each new one would log in at Keystone.
            self._client = self._client or self._connect()
            why = _unknown(self._client, server_id)
        except (exceptions.ClientException, cfg.Error) as error:
            # Its text names the server, and would be another one each time.
            LOG.debug('Server %s: %s', server_id, error)
            why = type(error).__name__
        if why:
            self._tell(why)
        return why is None

    def _tell(self, why):
        """Log a reason once in a row: members make the requests."""
        if why != self._told:
            self._told = why
            LOG.warning('Nova does not say that a server is gone, so its port'
                        ' stays with it: %s', why)


def _unknown(client, server_id):
    """Return None if Nova itself says that there is no such server.

    To a user who is not an admin, Nova says so of each server of another
    project. It refuses a list of all projects to such a user.

    :returns: else why this is not known; no text for a server that exists
    """
    found = client.get(f'/servers/{server_id}', raise_exc=False)
    if found.status_code == 200:
        return ''
    if found.status_code != 404 or 'itemNotFound' not in _body(found):
        return f'HTTP {found.status_code}'
    listed = client.get('/servers', raise_exc=False, params={
        'all_tenants': 'True', 'uuid': server_id})
    if listed.status_code != 200:
        return ('the user of [nova] may not list the servers of all projects:'
                f' HTTP {listed.status_code}')
    return None if _body(listed).get('servers') == [] else ''


def _body(answer):
    """Return the object of an answer; a server before Nova sends others."""
    try:
        found = answer.json()
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _client():
    auth = loading.load_auth_from_conf_options(cfg.CONF, 'nova')
    session = loading.load_session_from_conf_options(cfg.CONF, 'nova',
                                                     auth=auth)
    session.timeout = _TIMEOUT_S
    return adapter.Adapter(
        session, service_type='compute', region_name=cfg.CONF.nova.region_name,
        interface=cfg.CONF.nova.endpoint_type, connect_retries=0)

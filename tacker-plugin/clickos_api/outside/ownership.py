# SPDX-License-Identifier: Apache-2.0
"""Whose a server is, where it runs, and which server a VNF means."""

import collections
import dataclasses
import hashlib
import threading
import time

from clickos_client import document
from clickos_client import outcomes
from clickos_client import vnf
from keystoneauth1 import exceptions as ks_exc
from keystoneauth1 import loading as ks_loading
from oslo_log import log as logging
from oslo_utils import uuidutils

from clickos_api import errors
from clickos_api.state import keys

LOG = logging.getLogger(__name__)

HOST = 'OS-EXT-SRV-ATTR:host'
USER_DATA = 'OS-EXT-SRV-ATTR:user_data'
#: The oldest version of Nova's API that shows user_data.
_MICROVERSION = '2.3'
#: The oldest one that shows the details of events.
_EVENTS_MICROVERSION = '2.84'
#: Servers that are remembered, and VNFs with the seconds for which they are.
_KNOWN = 10000
_CLAIMS, _CLAIM_S = 1000, 5


#: Codes of a guest that may be elsewhere than the service remembers.
MOVED = {'no-such-guest', 'stale', 'dead-guest'}


@dataclasses.dataclass(frozen=True)
class Target:
    """An id of a request, not yet checked.

    :param kind: of authority.Authority.find()
    :param id: UUID; that of its chain for a fusion
    :param vnfc: which of a VNF's guests, by VDU or VNFC id; None if it has
        only one
    """

    kind: str
    id: str
    vnfc: str | None = None


@dataclasses.dataclass(frozen=True)
class Server:
    """A server as Nova has it.

    :param host: Nova's name of its host, or None
    :param vnf_id: the VNF that Tacker made the server for, or None
    :param user_data: as Nova has it, base64, or None
    :param state_key: of the state of its project that user_data refers to,
        or of its own state
    """

    id: str
    project_id: str
    host: str | None
    status: str | None
    vnf_id: str | None
    user_data: str | None
    state_key: str

    @property
    def own_key(self):
        """The key of its own state, which it has without a reference."""
        return keys.of_server(self.id)

    @property
    def has_reference(self):
        """Return whether user_data refers to a state."""
        return keys.is_reference(self.state_key)

    def require_host(self):
        """Return the host.

        :raises errors.Dead: if the server is on no host
        """
        if not self.host:
            raise errors.Dead(f'server {self.id} is on no host, its status'
                              f' is {self.status}')
        return self.host


class Gone(errors.NotFound):
    """Nova has no such server, or does not show it to the caller."""


class Cloud:
    """Requests of this service to Nova, Tacker and Neutron."""

    def __init__(self, conf):
        self._conf = conf
        self._nova = None
        self._tacker = None
        self._neutron = None
        self._making = threading.Lock()
        self._known = collections.OrderedDict()
        self._claims = collections.OrderedDict()
        self._knowing = threading.Lock()

    def server(self, server_id, is_fresh=False):
        """Return a Server, of any project.

        A server never changes its owner, so remembering it gives no
        access to others. The guest's incarnation guards against an old host.

        :param is_fresh: ask Nova in any case
        :raises Gone: if Nova has no such server
        """
        with self._knowing:
            until_s, found = self._known.get(server_id, (0, None))
        if is_fresh or time.monotonic() >= until_s:
            found = _server(self._server(server_id))
            self._remember(found)
        return found

    def _remember(self, found):
        ttl_s = self._conf.clickos_api.server_cache_ttl
        with self._knowing:
            self._known[found.id] = (time.monotonic() + ttl_s, found)
            self._known.move_to_end(found.id)
            if len(self._known) > _KNOWN:
                self._known.popitem(last=False)

    def forget(self, server_id):
        """Forget a server; return whether it was remembered."""
        with self._knowing:
            until_s, _found = self._known.pop(server_id, (0, None))
            return time.monotonic() < until_s

    def has_moved(self, server, error):
        """Return whether a guest may be elsewhere, and forget where it was."""
        was_remembered = (error.code in {*MOVED, 'timeout'}
                          and self.forget(server.id))
        return was_remembered and error.code in MOVED

    def is_gone(self, server_id):
        """Return whether Nova has no such server in any project."""
        try:
            self.server(server_id, is_fresh=True)
        except Gone:
            self.forget(server_id)
            return True
        return False

    def server_of_vnf(self, context, target, is_fresh=True):
        """Return the server id of a VNF's guest.

        The request carries the caller's token. The id is a claim only: Tacker
        has it from the cloud that the tenant registered as VIM. So Nova still
        has to name the server's owner.

        :param is_fresh: False to take what Tacker told this token lately
        """
        key = _claim_key(context, target)
        with self._knowing:
            until_s, guests = self._claims.get(key, (0, None))
        if is_fresh or time.monotonic() >= until_s:
            guests = self._guests_of(context, target)
            self._remember_claim(key, guests)
        return _choose(guests, target)

    def _remember_claim(self, key, guests):
        ttl_s = min(_CLAIM_S, self._conf.clickos_api.server_cache_ttl)
        with self._knowing:
            self._claims[key] = (time.monotonic() + ttl_s, guests)
            self._claims.move_to_end(key)
            if len(self._claims) > _CLAIMS:
                self._claims.popitem(last=False)

    def forget_vnf(self, context, target):
        """Forget a VNF; return whether it was remembered."""
        with self._knowing:
            until_s, _ = self._claims.pop(_claim_key(context, target),
                                          (0, None))
            return time.monotonic() < until_s

    def _guests_of(self, context, target):
        """Ask Tacker for a VNF's guests, as (server id, its VNFC ids)."""
        found = self._ask(
            self._adapters()[1], f'/vnflcm/v1/vnf_instances/{target.id}',
            context.auth_token,
            errors.NotFound(f'VNF instance {target.id} could not be found',
                            code='no-such-vnf'))
        guests = _guests(found)
        if not guests:
            raise _no_guest(target.id, found.get('instantiationState'))
        return guests

    def neutron(self, path, token, not_found):
        """GET a path of Neutron; see _ask."""
        return self._ask(self._adapters()[2], path, token, not_found)

    def update_port(self, port_id, values):
        """Change a port of Neutron as the service.

        :raises errors.Unavailable: if Neutron does not do it
        """
        neutron = self._adapters()[2]
        try:
            neutron.put(f'/v2.0/ports/{port_id}', json={'port': values})
        except ks_exc.ClientException as exc:
            raise _unavailable(neutron, exc)

    def _server(self, server_id):
        body = self._ask(
            self._adapters()[0], f'/servers/{server_id}', None,
            Gone(f'server {server_id} could not be found'), _MICROVERSION)
        return body['server']

    def actions(self, server_id):
        """List what was done to a server, the newest first, as Nova does."""
        return self._events_at(f'/servers/{server_id}/os-instance-actions')[
            'instanceActions']

    def events(self, server_id, request_id):
        """List the events of an action, as Nova does for administrators."""
        return self._events_at(
            f'/servers/{server_id}/os-instance-actions/{request_id}')[
                'instanceAction'].get('events') or []

    def _events_at(self, path):
        return self._ask(self._adapters()[0], path, None, errors.NotFound(
            'the server has no such actions any more'), _EVENTS_MICROVERSION)

    def _ask(self, adapter, path, token, not_found, microversion=None):
        """GET path with the caller's token, or the service's own if None.

        :param not_found: what to raise on 404
        """
        headers = {'X-Auth-Token': token} if token else {}
        try:
            return adapter.get(path, headers=headers,
                               authenticated=token is None,
                               microversion=microversion,
                               connect_retries=_retries(adapter)).json()
        except ks_exc.NotFound:
            raise not_found
        except (ks_exc.Forbidden, ks_exc.Unauthorized) as exc:
            if token is None:
                raise _unavailable(adapter, exc)
            raise errors.Forbidden(
                f'{adapter.service_type} does not permit the caller to see'
                f' {path}')
        except (ks_exc.ClientException, ValueError) as exc:
            raise _unavailable(adapter, exc)

    def _adapters(self):
        """Return the adapters of Nova, Tacker and Neutron.

        The first call makes them.
        """
        with self._making:
            if self._nova is None:
                auth = ks_loading.load_auth_from_conf_options(
                    self._conf, 'nova')
                session = ks_loading.load_session_from_conf_options(
                    self._conf, 'nova', auth=auth)
                self._tacker = ks_loading.load_adapter_from_conf_options(
                    self._conf, 'tacker', session=session)
                self._neutron = ks_loading.load_adapter_from_conf_options(
                    self._conf, 'neutron', session=session)
                self._nova = ks_loading.load_adapter_from_conf_options(
                    self._conf, 'nova', session=session)
            return self._nova, self._tacker, self._neutron


def _server(body):
    metadata = body.get('metadata') or {}
    user_data = body.get(USER_DATA)
    try:
        state_id = document.reference(user_data)
    except document.DocumentError:
        state_id = None   # its guest never started
    return Server(body['id'], body['tenant_id'], body.get(HOST),
                  body.get('status'), metadata.get(vnf.SERVER_KEY),
                  user_data, keys.of_state(body['tenant_id'], state_id)
                  if state_id else keys.of_server(body['id']))


def _claim_key(context, target):
    """Tacker decides who sees a VNF, so each token has claims of its own."""
    token = (context.auth_token or '').encode()
    return hashlib.sha256(token).digest(), target.id


def _guests(found):
    """List a VNF's guests as (server id, its VNFC ids)."""
    info = found.get('instantiatedVnfInfo') or {}
    guests = []
    for vnfc in info.get('vnfcResourceInfo') or []:
        server_id = (vnfc.get('computeResource') or {}).get('resourceId')
        # The text is of the tenant's cloud, and becomes a path at Nova.
        if isinstance(server_id, str) and uuidutils.is_uuid_like(server_id):
            guests.append((server_id, (vnfc.get('id'), vnfc.get('vduId'))))
    return guests


def _no_guest(vnf_id, state):
    """Return the error of a VNF without guests: for now, or at all."""
    is_instantiated = state == 'INSTANTIATED'
    kind, code = (errors.Unavailable, 'guest-replaced') if is_instantiated \
        else (errors.Dead, 'not-instantiated')
    return kind(outcomes.no_guest(vnf_id, is_instantiated), code=code)


def _choose(guests, target):
    """Return the server id of the guest a target means."""
    if target.vnfc is not None:
        guests = [g for g in guests if target.vnfc in g[1]]
    if not guests:
        raise errors.NotFound(f'VNF instance {target.id} has no VNFC'
                              f' {target.vnfc}', code='no-such-vnfc')
    if len(guests) > 1:
        names = ', '.join(f'{vdu} {vnfc}' for _, (vnfc, vdu) in guests)
        raise errors.BadRequest(f'VNF instance {target.id} has several'
                                f' guests; name one with ?vnfc=: {names}')
    return guests[0][0]


def _retries(adapter):
    """Return how often to connect again: a proxy may end an idle connection.

    The option connect_retries of the service's section says otherwise.
    """
    given = adapter.connect_retries
    return 1 if given is None else given


def _unavailable(adapter, exc):
    LOG.error('%s: %s', adapter.service_type, exc)
    return errors.Unavailable(f'{adapter.service_type} cannot be asked now;'
                              ' try again later')

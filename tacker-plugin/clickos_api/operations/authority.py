# SPDX-License-Identifier: Apache-2.0
"""Through which an id becomes an object, wherever a request has it.

Every route, body and reference passes Authority.find(). An id of another
project is answered as an id of nothing: 404, before anything is changed.
"""

from oslo_log import log as logging

from clickos_api import errors
from clickos_api.operations import policy
from clickos_api.outside import ownership
from clickos_api.state import fusions
from clickos_api.state import keys

LOG = logging.getLogger(__name__)

#: They may go to the guest that a VNF had seconds ago.
_READS = (policy.LIST, policy.READ, policy.PORT_LIST)
#: The guest that a VNF had may be gone.
_GONE = {*ownership.MOVED, 'no-such-server', 'no-such-vnfc'}
#: What services may do to the stored state of a server.
_OF_SERVICES = (policy.STATE_SHOW, policy.STATE_DELETE, policy.STATE_START)


class Authority:
    """Decides which objects a caller may name.

    :param cloud: ownership.Cloud
    :param store: desired_state.Store
    :param secrets: secrets.Secrets
    :param rules: policy.Policy
    """

    def __init__(self, cloud, store, secrets, rules):
        self._cloud = cloud
        self._store = store
        self._secrets = secrets
        self._policy = rules
        self.fusions = fusions.Fusions(store)
        self._finders = {
            'servers': self._server, 'vnfs': self._server,
            'states': self._state, 'chains': self._chain,
            'fusions': self._fusion, 'ports': self._port,
            'secrets': self._secret, 'limits': self._limits,
            'projects': self._project}

    def find(self, context, project_id, target, rule):
        """Return what an id means to a caller, if the rule permits it.

        :param project_id: whose the object has to be; None for the owner
            that Nova or Neutron names. The caller's own, but for services.
        :param target: ownership.Target
        :returns: ownership.Server; states.State; a chain or a port as
            Neutron shows it; fusions.Fusion; a secret without its value;
            the key of limits; or the id of the caller's project
        :raises errors.NotFound: if there is none, or the caller may not see it
        :raises errors.Forbidden: if it is the caller's, and the rule forbids
        """
        return self._finders[target.kind](context, project_id, target, rule)

    def _server(self, context, project_id, target, rule):
        server_id = self._server_id(context, target, rule)
        server = self._seen(context, project_id, server_id, rule)
        gone = ownership.Gone(f'server {server_id} could not be found')
        if project_id not in (None, server.project_id):
            raise gone
        self._require(context, rule, server.project_id, gone)
        self.require_state(server)
        return server

    def _seen(self, context, project_id, server_id, rule):
        """Return the Server as Nova has it.

        nova-compute asks while it starts a guest without a reference. Then
        the answer is the same if Nova cannot be asked, or has no such server.
        """
        is_service = self.acts_for_others(context, rule)
        try:
            return self._cloud.server(
                server_id,
                is_fresh=is_service and rule != policy.STATE_START)
        except errors.ApiError as exc:
            if is_service:
                return self._stored(project_id, server_id)
            if isinstance(exc, ownership.Gone):
                self._prune(server_id)
            raise

    def acts_for_others(self, context, rule):
        """Return whether a service may do this for any project."""
        return (rule in _OF_SERVICES
                and self._policy.allows_any(context, rule))

    def _stored(self, project_id, server_id):
        """Return a Server as the database has it."""
        key = keys.of_server(server_id)
        owner = self._store.read(key).project_id or project_id
        return ownership.Server(server_id, owner, None, None, None, None, key)

    def _server_id(self, context, target, rule):
        if target.kind == 'servers':
            return target.id
        return self._cloud.server_of_vnf(context, target,
                                         rule not in _READS)

    def _prune(self, server_id):
        """Forget the own state of a server that Nova has no more."""
        key = keys.of_server(server_id)
        try:
            if self._store.knows(key):
                self._store.delete(key)
                LOG.info('Server %s is gone, its desired state too',
                         server_id)
        except errors.Unavailable:
            LOG.warning('Server %s: its desired state stays', server_id)

    def require_state(self, server):
        """Refuse a server whose user_data refers to nothing of its project.

        :raises errors.NotFound: (code no-such-state)
        """
        if server.has_reference and not self._store.knows(server.state_key):
            raise errors.NotFound(
                f'server {server.id}: its user_data refers to no state of its'
                ' project', code='no-such-state')

    def _state(self, context, project_id, target, rule):
        owner = project_id or context.project_id
        key = keys.of_state(owner, target.id)
        missing = errors.NotFound(f'state {target.id} could not be found',
                                  code='no-such-state')
        self._require(context, rule, owner, missing)
        if not self._store.knows(key):
            raise missing
        return self._store.read(key)

    def _chain(self, context, _project_id, target, rule):
        """Ask Neutron with the caller's token, so it decides who sees it."""
        missing = errors.NotFound(f'port chain {target.id} could not be found',
                                  code='no-such-chain')
        chain = self._cloud.neutron(
            f'/v2.0/sfc/port_chains/{target.id}', context.auth_token,
            missing)['port_chain']
        self._require(context, rule, chain['project_id'], missing)
        return chain

    def _port(self, context, _project_id, target, rule):
        """Ask Neutron as the service: it alone sees the binding profile."""
        missing = errors.NotFound(f'port {target.id} could not be found',
                                  code='no-such-port')
        port = self._cloud.neutron(f'/v2.0/ports/{target.id}', None,
                                   missing)['port']
        network = self._cloud.neutron(
            f'/v2.0/networks/{port["network_id"]}', None, missing)['network']
        self._require(context, rule, port['project_id'], missing,
                      network_project_id=network['project_id'])
        return port

    def _fusion(self, context, _project_id, target, rule):
        missing = errors.NotFound(f'chain {target.id}: is not fused',
                                  code='not-fused')
        found = self.fusions.of_chain(target.id)
        if found is None:
            raise missing
        self._require(context, rule, found.project_id, missing)
        return found

    def _secret(self, context, _project_id, target, rule):
        self._policy.require(context, rule, context.project_id)
        return self._secrets.show(context.project_id, target.id)

    def _limits(self, context, _project_id, target, rule):
        """The project is part of the key, so no id is of another one."""
        self._policy.require(context, rule, context.project_id)
        return context.project_id, target.id

    def _project(self, context, _project_id, _target, rule):
        """Operations without an id are about the caller's project."""
        self._policy.require(context, rule, context.project_id)
        return context.project_id

    def has_other_guest(self, context, target, rule, error):
        """Return whether a read failed since a VNF has another guest now."""
        return (target.kind == 'vnfs' and rule in _READS
                and error.code in _GONE
                and self._cloud.forget_vnf(context, target))

    def _require(self, context, rule, project_id, missing, **more):
        """Let pass who may do this; others do not learn of the object."""
        try:
            self._policy.require(context, rule, project_id, **more)
        except errors.Forbidden:
            if (context.project_id != project_id
                    and 'admin' not in context.roles):
                raise missing
            raise

    def fused(self, server):
        """Return (fused Server, fusions.Hop) of a hop's server.

        :returns: None if it is no hop, or Nova has no fused server any more
        """
        found = self.fusions.of_state(server.state_key)
        if found is None or found.project_id != server.project_id:
            return None
        try:
            fused = self._cloud.server(found.server_id)
        except ownership.Gone:
            return None
        if fused.project_id != server.project_id:
            return None
        self.require_state(fused)
        return fused, found.hop(server.state_key)

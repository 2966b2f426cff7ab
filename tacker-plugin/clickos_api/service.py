# SPDX-License-Identifier: Apache-2.0
"""The parts of the service, put together."""

from clickos_api import errors
from clickos_api.operations import authority
from clickos_api.operations import catalog
from clickos_api.operations import chains
from clickos_api.operations import changing
from clickos_api.operations import events
from clickos_api.operations import flow_transfer
from clickos_api.operations import fusing
from clickos_api.operations import policy
from clickos_api.operations import port_roles
from clickos_api.operations import reading
from clickos_api.operations import shared_limits
from clickos_api.operations import workers
from clickos_api.outside import audit
from clickos_api.outside import ownership
from clickos_api.outside import rpc
from clickos_api.state import desired_state
from clickos_api.state import secrets

#: Threads that wait for agents, in addition to those of HTTP. More requests
#: to guests at a time get 503. One project leaves an eighth of them to others.
_GUEST_THREADS = 64


class Service:
    """What the operations use; every method raises errors.ApiError."""

    def __init__(self, conf):
        self.options = conf.clickos_api
        self.store = desired_state.Store(conf)
        self.cloud = ownership.Cloud(conf)
        self.agent = rpc.Agent(conf)
        self.audit = audit.Audit(conf)
        self.secrets = secrets.Secrets(self.store, self.options)
        self._policy = policy.Policy(conf)
        self.authority = authority.Authority(
            self.cloud, self.store, self.secrets, self._policy)
        self.workers = workers.Workers(_GUEST_THREADS)
        self.bulkhead = workers.Bulkhead(self.options.max_waiting_http_threads,
                                         self.options.read_queue)
        self.chains = chains.Chains(self.cloud, self.agent, self.bulkhead)
        self.events = events.Events(self.cloud, self.bulkhead)
        self.fusing = fusing.Fusing(self)
        self.port_roles = port_roles.PortRoles(self.cloud, self.audit)
        self.catalog = catalog.Catalog(self.options.catalog_path)
        self.reading = reading.Reading(self)
        self.changing = changing.Changes(self)
        self.limits = shared_limits.SharedLimits(self)

    def on_current_host(self, server, work):
        """Do work(server); do it again if the guest is elsewhere by now."""
        try:
            return work(server)
        except errors.ApiError as exc:
            if not self.cloud.has_moved(server, exc):
                raise
        return work(self.cloud.server(server.id, is_fresh=True))

    def ask(self, server, method, *arguments):
        """Ask a guest, with the slot of a read."""
        return self.on_current_host(
            server, lambda where: self.workers.submit(
                where.project_id, method, where.require_host(), where.id,
                *arguments).result())

    def transfer_flows(self, source, targets):
        """Let guests go on with the flows of another one; return how many.

        No desired state changes.
        """
        for target in targets:
            if target.id == source.id \
                    or target.project_id != source.project_id:
                raise errors.BadRequest(
                    f'to: server {target.id} must be another guest of the'
                    ' same project')
        guests = self.fusing.flows(source, targets, self._guest)
        with self.bulkhead.read(source):
            return self.workers.submit(
                source.project_id, flow_transfer.transfer, *guests).result()

    def _guest(self, server):
        def ask(method, *arguments):
            return self.on_current_host(server, lambda where: method(
                where.require_host(), where.id, *arguments))

        return flow_transfer.Guest(server.id, self.agent, ask)

    def secrets_of(self, context, state):
        """Return {reference: value} of a state, for the service that starts
        its guest.
        """
        if not self._policy.allows_any(context, policy.SECRET_READ):
            raise errors.Forbidden(
                f'policy does not allow {policy.SECRET_READ} to be performed')
        return self.secrets.of(state.project_id, state.writes).values

    def forget(self, server_id):
        """Forget where a server is, and the values of its guest."""
        self.cloud.forget(server_id)
        self.reading.values.changed(server_id)

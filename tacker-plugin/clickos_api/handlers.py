# SPDX-License-Identifier: Apache-2.0
"""What the service does: handlers and desired state of guests."""

from clickos_client import document
from oslo_log import log as logging
from oslo_utils import excutils

from clickos_api import chains
from clickos_api import desired_state
from clickos_api import errors
from clickos_api import ownership
from clickos_api import policy
from clickos_api import rpc

LOG = logging.getLogger(__name__)


class Handlers:
    """The service's operations, each for one caller and one target.

    Every method raises errors.ApiError.
    """

    def __init__(self, conf):
        self._store = desired_state.Store(conf)
        self._cloud = ownership.Cloud(conf)
        self._agent = rpc.Agent(conf)
        self._policy = policy.Policy(conf)
        self.chains = chains.Chains(self._cloud, self._agent, self._policy)

    def list(self, context, target):
        """List the handlers of the target's guest."""
        server_id = self._owned(context, target, policy.LIST)
        return self._agent.handler_list(self._cloud.host(server_id),
                                        server_id)

    def ports(self, context, target):
        """List the ports of the target's guest."""
        server_id = self._owned(context, target, policy.PORT_LIST)
        return self._agent.port_list(self._cloud.host(server_id), server_id)

    def read(self, context, target, name):
        """Return the value of one handler."""
        server_id = self._owned(context, target, policy.READ)
        return self._agent.handler_read(self._cloud.host(server_id),
                                        server_id, name)

    def write(self, context, target, writes):
        """Write handlers, all or none; return the revision.

        Recorded as desired state if, and only if, the guest accepted them.
        The record of a write without an answer waits for the next answer.
        """
        server_id = self._owned(context, target, policy.WRITE)
        revision = self._change(server_id, writes, self._agent.handler_write,
                                writes)
        LOG.info('Server %s: revision %d: %s', server_id, revision,
                 ', '.join(name for name, _ in writes))
        return revision

    def replace(self, context, target, found):
        """Replace the configuration; return the revision.

        Recorded as write() does. The writes before it are forgotten.

        :param found: document.Configuration
        """
        server_id = self._owned(context, target, policy.CONFIG_REPLACE)
        origin = self._cloud.origin(server_id)
        _require_no_vnf(target.id if target.kind == 'vnfs'
                        else origin.vnf_id, server_id)
        revision = self._change(
            server_id,
            {'config': found.config, 'config_name': found.config_name,
             'replaces': document.digest(origin.user_data)},
            self._agent.config_replace, found.config, found.config_name)
        LOG.info('Server %s: revision %d: configuration %s', server_id,
                 revision, found.config_name)
        return revision

    def _change(self, server_id, change, method, *arguments):
        """Let the agent make a change, and record it; return the revision.

        :param change: for the record
        :param method: of the agent, with the arguments after the attempt
        """
        host = self._cloud.host(server_id)
        attempt = self._store.begin(server_id, change)
        applied = self._asked(server_id, attempt, method, host, server_id,
                              attempt, *arguments)
        return self._store.accept(server_id, attempt, applied)

    def _asked(self, server_id, attempt, method, *arguments):
        """:returns: the attempts that the agent applied"""
        try:
            return method(*arguments)
        except Exception as exc:
            with excutils.save_and_reraise_exception():
                self._store.fail(server_id, attempt, rpc.is_refusal(exc))

    def desired_state(self, context, target):
        """Return the target's desired_state.State."""
        return self._store.read(
            self._owned_or_any(context, target, policy.STATE_SHOW))

    def forget(self, context, target):
        """Forget the target's desired state; may be called twice."""
        server_id = self._owned_or_any(context, target, policy.STATE_DELETE)
        self._store.delete(server_id)
        LOG.info('Server %s: desired state deleted', server_id)

    def _owned_or_any(self, context, target, rule):
        """Return the target's server, without Nova if it is any's to ask.

        nova-compute asks while it starts a guest; the answer must not depend
        on nova-api, nor on whether Nova still has the server.
        """
        if self._policy.allows_any(context, rule):
            return self._server_id(context, target)
        return self._owned(context, target, rule)

    def _owned(self, context, target, rule):
        """Return the target's server if the caller may do this to it."""
        server_id = self._server_id(context, target)
        try:
            project_id = self._cloud.owner(context, server_id)
        except ownership.Gone:
            self._prune(server_id)
            raise
        self._policy.require(context, rule, project_id)
        return server_id

    def _server_id(self, context, target):
        if target.kind == 'servers':
            return target.id
        return self._cloud.server_of_vnf(context, target)

    def _prune(self, server_id):
        """Forget a server that Nova has no more.

        A server that the caller cannot see may be another tenant's, so the
        service looks itself before it forgets anything.
        """
        try:
            if (self._store.knows(server_id)
                    and self._cloud.is_gone(server_id)):
                self._store.delete(server_id)
                LOG.info('Server %s is gone, its desired state too',
                         server_id)
        except errors.Unavailable:
            LOG.warning('Server %s: not known whether it is gone', server_id)


def _require_no_vnf(vnf_id, server_id):
    if vnf_id:
        raise errors.ApiError(
            f'server {server_id}: the configuration belongs to the descriptor'
            f' of VNF instance {vnf_id}, and a heal would install it again;'
            ' write handlers or update properties, or instantiate a changed'
            ' package', code='owned-by-vnf', status=409)

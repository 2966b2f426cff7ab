# SPDX-License-Identifier: Apache-2.0
"""Changes of guests: each is numbered, sent, and recorded if accepted."""

from concurrent import futures
import dataclasses

from clickos_client import document
from clickos_client import outcomes
from clickos_client import secrets
from oslo_log import log as logging

from clickos_api import errors
from clickos_api.outside import rpc
from clickos_api.state import history
from clickos_api.state import states

LOG = logging.getLogger(__name__)

_NO_VERDICT = 'no-verdict'


@dataclasses.dataclass(frozen=True)
class Verdict:
    """The outcome of a change.

    :param server_id: whose change it is
    :param number: of the change
    :param revision: of the state after it; None without a verdict
    :param commands: handlers whose writes did something once
    :param edits: handlers whose writes changed a part of a table
    """

    server_id: str
    number: int
    revision: int | None = None
    commands: tuple = ()
    edits: tuple = ()

    def told(self, event):
        """Log the change; return it for auditors."""
        LOG.info('Server %s: %s: change %d, revision %s', self.server_id,
                 event, self.number, self.revision)
        return dataclasses.asdict(self)


class Change:
    """A change of a guest that is noted as pending.

    :param service: service.Service
    :param server: ownership.Server, whose host is known
    :param change_id: states.ChangeId
    :param body: writes, or a configuration, for the record
    """

    def __init__(self, service, server, change_id, body):
        self.server, self.id = server, change_id
        self._store, self._values = service.store, service.reading.values
        self._body = body

    def carry_out(self, send):
        """Send the change, wait for a verdict and record it.

        :param send: takes the Change and returns states.Accepted
        :returns: Verdict; None if the agent gave no verdict
        """
        self._values.changed(self.server.id)
        try:
            accepted = send(self)
        except errors.ApiError as exc:
            if rpc.is_refusal(exc):
                self.end(exc)
                raise
            self.end(None)
            LOG.warning('Server %s: change %d has no verdict: %s',
                        self.server.id, self.id.number, exc.message)
            return None
        finally:
            self._values.changed(self.server.id)
        return self._accept(accepted)

    def end(self, error):
        """Note that the change failed; None if the guest may yet take it."""
        self._store.fail(self.server.state_key, self.id.number, error)

    def _accept(self, accepted):
        number = self.id.number
        revision = self._store.accept(
            self.server.state_key, number, accepted.applied,
            accepted.incarnation, accepted.passing)
        passing = accepted.passing.get(number, states.Passing())
        return Verdict(self.server.id, number, revision, *(
            tuple(states.names(self._body, places))
            for places in (passing.commands, passing.edits)))

    def verdict(self, job, wait_s):
        """Return the Verdict of a job, without a revision if it takes long."""
        try:
            found = job.result(wait_s)
        except futures.TimeoutError:
            found = None
        return found or Verdict(self.server.id, self.id.number)


class Changes:
    """Changes guests, and records what they accepted.

    Recorded as desired state if, and only if, the guest accepted it and calls
    it values: commands and edits are not repeated.

    :param service: service.Service
    """

    def __init__(self, service):
        self._service = service

    def apply(self, server, body, send):
        """Let a guest make a change, and record it; return a Verdict.

        :param body: writes, or a configuration, for the record
        :param send: takes the Change and returns states.Accepted
        """
        return self._service.on_current_host(
            server, lambda where: self._apply(where, body, send))

    def _apply(self, server, body, send):
        service = self._service
        with service.bulkhead.change(server) as slot:
            change = self._begin(server, body, slot is not None)
            try:
                job = service.workers.submit(
                    server.project_id, change.carry_out,
                    slot.timed(send) if slot else send)
            except errors.ApiError as exc:
                change.end(exc)
                raise
            return change.verdict(
                job, service.options.change_wait_timeout if slot else 0)

    def _begin(self, server, body, may_wait):
        return Change(self._service, server, self._service.store.begin(
            server.state_key, body, server.project_id, server.id,
            server.require_host(), may_wait=may_wait), body)

    def write(self, server, writes):
        """Write handlers, all or none, of a fused chain's hop at both guests.

        :returns: Verdict
        """
        self._service.fusing.require_not_fused(server)
        both = self._service.fusing.of_hop(server)
        send = self._sender(server, writes)

        def send_both(change):
            self.write_fused(*both, writes)
            return send(change)
        return self.apply(server, writes, send_both if both else send)

    def write_fused(self, fused, hop, writes):
        """Write a hop's handlers in the fused guest of its chain.

        For a thread that may wait: of workers, or of HTTP.

        :raises errors.AgentTimeout: if the guest gave no verdict
        """
        inner = [[hop.in_fused(name), value] for name, value in writes
                 if hop.in_fused(name)]
        if inner and self._service.on_current_host(
                fused, lambda where: self._begin(
                    where, inner, True).carry_out(
                        self._sender(where, inner))) is None:
            raise errors.AgentTimeout(
                f'server {fused.id}, which has the hops of the chain: '
                + outcomes.message(_NO_VERDICT), code=_NO_VERDICT)

    def _sender(self, server, writes):
        """Return what sends writes; only agents get values of secrets."""
        found = self._service.secrets.of(server.project_id, writes)
        try:
            resolved = found.resolved(writes)
        except secrets.TooLong as exc:
            raise errors.TooLarge(str(exc))
        return lambda change: self._service.agent.handler_write(
            change.server.host, change.server.id, change.id, resolved,
            bool(found.values))

    def replace(self, server, target, found):
        """Replace the configuration; return a Verdict.

        The writes before it are forgotten.

        :param target: ownership.Target, as the caller named the server
        :param found: document.Configuration
        """
        self._require_own_configuration(server, target)
        return self._replace(server, found.config, found.config_name)

    def _replace(self, server, config, config_name):
        body = {'config': config, 'config_name': config_name}
        if not server.has_reference:
            body['replaces'] = document.digest(server.user_data)
        return self.apply(
            server, body, lambda change: self._service.agent.config_replace(
                change.server.host, change.server.id, change.id, config,
                config_name))

    def restore(self, server, target, revision):
        """Bring an earlier revision back; return a Verdict.

        A handler without a value at that revision needs its first one, so
        the guest gets its configuration again in that case.
        """
        store = self._service.store
        now = store.read(server.state_key)
        then = history.at(store, server.state_key, revision)
        verdict = Verdict(server.id, now.number, now.revision)
        missing = ({name for name, _ in now.writes}
                   - {name for name, _ in then.writes})
        if missing or now.configuration != then.configuration:
            self._require_own_configuration(server, target)
            found = then.configuration or _first(server)
            verdict = self._replace(server, found['config'],
                                    found['config_name'])
            now = states.State()
        wanted = [pair for pair in then.writes if pair not in now.writes]
        if wanted and verdict.revision is not None:
            verdict = self.write(server, wanted)
        return verdict

    def _require_own_configuration(self, server, target):
        """Refuse a configuration that would not outlive a heal or a fusion."""
        vnf_id = target.id if target.kind == 'vnfs' else server.vnf_id
        if vnf_id:
            raise errors.ApiError(
                f'server {server.id}: the configuration belongs to the'
                f' descriptor of VNF instance {vnf_id}, and a heal would'
                ' install it again; write handlers or update properties, or'
                ' instantiate a changed package', code='owned-by-vnf',
                status=409)
        self._service.fusing.require_no_part(server)


def _first(server):
    """Return the configuration of a server's user_data."""
    try:
        found = document.parse(server.user_data)
    except document.DocumentError:
        raise errors.Dead(f'server {server.id}: its first configuration is'
                          ' not in user_data', code='no-such-revision')
    return {'config': found.config, 'config_name': found.config_name}

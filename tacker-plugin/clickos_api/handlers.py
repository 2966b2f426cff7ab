# SPDX-License-Identifier: Apache-2.0
"""What the service does: handlers and desired state of guests."""

from concurrent import futures
import dataclasses

from clickos_client import document
from clickos_client import outcomes
from clickos_client import secrets as client_secrets
from oslo_log import log as logging

from clickos_api import audit
from clickos_api import authority
from clickos_api import catalog
from clickos_api import chains
from clickos_api import desired_state
from clickos_api import errors
from clickos_api import events
from clickos_api import fusing
from clickos_api import giving
from clickos_api import history
from clickos_api import keys
from clickos_api import ownership
from clickos_api import policy
from clickos_api import port_roles
from clickos_api import reading
from clickos_api import rpc
from clickos_api import secrets
from clickos_api import states
from clickos_api import workers

LOG = logging.getLogger(__name__)

#: Threads that wait for agents, in addition to those of HTTP. More requests
#: to guests at a time get 503. One project leaves an eighth of them to others.
_GUEST_THREADS = 64

#: The guest may be elsewhere than the service remembers.
_MOVED = {'no-such-guest', 'stale', 'dead-guest'}
_GONE = {*_MOVED, 'no-such-server', 'no-such-vnfc'}
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


class Handlers:
    """The service's operations, each for one caller and one target.

    Every method raises errors.ApiError.
    """

    def __init__(self, conf):
        self.store = desired_state.Store(conf)
        self.cloud = ownership.Cloud(conf)
        self.agent = rpc.Agent(conf)
        self._secrets = secrets.Secrets(self.store, conf.clickos_api)
        self._policy = policy.Policy(conf)
        self.authority = authority.Authority(self.cloud, self.store,
                                             self._policy)
        self._audit = audit.Audit(conf)
        self.chains = chains.Chains(self.cloud, self.agent, self.authority)
        self.fusing = fusing.Fusing(self, self._audit)
        self.events = events.Events(self.cloud, self.authority)
        self.port_roles = port_roles.PortRoles(self.cloud, self.authority,
                                               self._audit)
        self.catalog = catalog.Catalog(conf.clickos_api.catalog_path,
                                       self._policy)
        self._options = conf.clickos_api
        self.workers = workers.Workers(_GUEST_THREADS)
        self._places = workers.Places(conf.clickos_api.waiting_threads,
                                      conf.clickos_api.read_queue)
        self._reading = reading.Reading(self)

    def list(self, context, target):
        """List the handlers of the target's guest."""
        return self._of_guest(context, target, policy.LIST, self._list)

    def _list(self, server):
        fused, hop = self.fusing.of_hop(server) or (None, None)
        if hop is None:
            return self._ask(server, self.agent.handler_list)
        return [{**each, 'name': each['name'].removeprefix(hop.prefix)}
                for each in self._ask(fused, self.agent.handler_list)
                if each['name'].startswith(hop.prefix)]

    def ports(self, context, target):
        """List the ports of the target's guest."""
        return self._of_guest(
            context, target, policy.PORT_LIST,
            lambda server: self._ask(server, self.agent.port_list))

    def _of_guest(self, context, target, rule, work):
        """Do work(server); again if a VNF has another guest by now."""
        try:
            return work(self.owned(context, target, rule))
        except errors.ApiError as exc:
            if target.kind != 'vnfs' or exc.code not in _GONE \
                    or not self.cloud.forget_vnf(context, target):
                raise
        return work(self.owned(context, target, rule))

    def read(self, context, target, read, max_age_s=None):
        """Return the value of one handler, and its age in seconds.

        :param read: states.Read
        :param max_age_s: how old the value may be; None for a new one
        """
        return self._of_guest(
            context, target, policy.READ,
            lambda server: self._reading.one(server, read, max_age_s))

    def read_many(self, context, target, reads, max_age_s=None):
        """Return [(read, (value, age) or errors.ApiError)]; see read()."""
        return self._of_guest(
            context, target, policy.READ,
            lambda server: self._reading.several(server, reads, max_age_s))

    def give_flows(self, context, target, to):
        """Let guests go on with the flows of the target's; return how many.

        No desired state changes.

        :param to: ids of the servers of the other guests
        """
        giver, *takers = (
            self.owned(context, each, policy.FLOWS_GIVE) for each in (
                target, *(ownership.Target('servers', key) for key in to)))
        for taker in takers:
            if taker.id == giver.id or taker.project_id != giver.project_id:
                raise errors.BadRequest(f'to: server {taker.id} is no other'
                                        ' guest of the same project')
        guests = self.fusing.flows(giver, takers, self._guest)
        given = self.read_waiting(giver, lambda: self.workers.submit(
            giver.project_id, giving.give, *guests).result())
        self._audit.tell(context, 'flows.give', {
            'server_id': giver.id, 'to': to, 'flows': given})
        return given

    def _guest(self, server):
        def ask(method, *arguments):
            return self._where_it_is(server, lambda where: method(
                where.require_host(), where.id, *arguments))

        return giving.Guest(server.id, self.agent, ask)

    def _ask(self, server, method, *arguments):
        """Ask a guest, with a thread of HTTP that waits."""
        return self.read_waiting(
            server, lambda: self.ask(server, method, *arguments))

    def ask(self, server, method, *arguments):
        """Ask a guest, for work of read_waiting()."""
        return self._where_it_is(
            server, lambda where: self.workers.submit(
                where.project_id, method, where.require_host(), where.id,
                *arguments).result())

    def read_waiting(self, server, work):
        """Do work() when it is the turn of this thread of HTTP."""
        with self._places.read(server):
            return work()

    def _where_it_is(self, server, work):
        """Do work(server); do it again if the guest is elsewhere by now."""
        try:
            return work(server)
        except errors.ApiError as exc:
            if not self._has_moved(server, exc):
                raise
        return work(self.cloud.server(server.id, is_fresh=True))

    def _has_moved(self, server, error):
        was_remembered = (error.code in {*_MOVED, 'timeout'}
                          and self.cloud.forget(server.id))
        return was_remembered and error.code in _MOVED

    def write(self, context, target, writes):
        """Write handlers, all or none; return a Verdict.

        Recorded as desired state if, and only if, the guest accepted them
        and calls them values: commands and edits are not repeated.
        """
        server = self.owned(context, target, policy.WRITE)
        verdict = self._write(server, writes)
        self._tell(context, 'handler.write', verdict,
                   handlers=[name for name, _ in writes])
        return verdict

    def _write(self, server, writes):
        """Write handlers, of a fused chain's hop at both its guests."""
        self.fusing.require_not_fused(server)
        both = self.fusing.of_hop(server)
        send = self._sender(server, writes)

        def send_both(*arguments):
            self.write_fused(*both, writes)
            return send(*arguments)
        return self._change(server, writes, send_both if both else send)

    def write_fused(self, fused, hop, writes):
        """Write a hop's handlers in the fused guest of its chain.

        For a thread that may wait: of workers, or of HTTP.

        :raises errors.Silent: if the guest gave no verdict
        """
        inner = [[hop.in_fused(name), value] for name, value in writes
                 if hop.in_fused(name)]
        if not inner:
            return

        def change(where):
            ticket = self.store.begin(
                where.state_key, inner, where.project_id, where.id,
                where.require_host(), may_wait=True)
            return self._carry_out(where, ticket, inner,
                                   self._sender(where, inner))
        if self._where_it_is(fused, change) is None:
            raise errors.Silent(f'server {fused.id}, which has the hops of'
                                ' the chain: '
                                + outcomes.message(_NO_VERDICT),
                                code=_NO_VERDICT)

    def _sender(self, server, writes):
        """Return what sends writes; only agents get values of secrets."""
        found = self._secrets.of(server.project_id, writes)
        try:
            resolved = found.resolved(writes)
        except client_secrets.TooLong as exc:
            raise errors.TooLarge(str(exc))

        def send(host, server_id, ticket):
            return self.agent.handler_write(host, server_id, ticket, resolved,
                                            bool(found.values))
        return send

    def replace(self, context, target, found):
        """Replace the configuration; return a Verdict.

        Recorded as write() does. The writes before it are forgotten.

        :param found: document.Configuration
        """
        server = self.owned(context, target, policy.CONFIG_REPLACE)
        _require_no_vnf(server, target)
        self.fusing.require_no_part(server)
        verdict = self._replace(server, found.config, found.config_name)
        self._tell(context, 'configuration.replace', verdict,
                   config_name=found.config_name)
        return verdict

    def _replace(self, server, config, config_name):
        change = {'config': config, 'config_name': config_name}
        if not server.has_reference:
            change['replaces'] = document.digest(server.user_data)
        return self._change(server, change, self.agent.config_replace,
                            config, config_name)

    def _tell(self, context, event, verdict, **details):
        LOG.info('Server %s: %s: change %d, revision %s', verdict.server_id,
                 event, verdict.number, verdict.revision)
        self._audit.tell(context, event, dataclasses.asdict(verdict)
                         | details)

    def _change(self, server, change, method, *arguments):
        """Let a guest make a change, and record it; return a Verdict.

        :param change: for the record
        :param method: of the agent, with the arguments after the ticket
        """
        return self._where_it_is(server, lambda where: self._begin(
            where, change, method, *arguments))

    def _begin(self, server, change, method, *arguments):
        host = server.require_host()
        with self._places.change(server) as seat:
            ticket = self.store.begin(
                server.state_key, change, server.project_id, server.id, host,
                may_wait=seat is not None)
            try:
                job = self.workers.submit(
                    server.project_id, self._carry_out, server, ticket, change,
                    seat.timed(method) if seat else method, *arguments)
            except errors.ApiError as exc:
                self.store.fail(server.state_key, ticket.number, exc)
                raise
            wait_s = self._options.verdict_wait if seat else 0
            return self._verdict(server, ticket, job, wait_s)

    def _verdict(self, server, ticket, job, wait_s):
        try:
            verdict = job.result(wait_s)
        except futures.TimeoutError:
            verdict = None
        return verdict or Verdict(server.id, ticket.number)

    def _carry_out(self, server, ticket, change, method, *arguments):
        """Wait for a verdict and record it.

        :param change: for the record
        :returns: Verdict; None if the agent gave no verdict
        """
        self._reading.values.changed(server.id)
        try:
            accepted = method(server.host, server.id, ticket, *arguments)
        except errors.ApiError as exc:
            is_refusal = rpc.is_refusal(exc)
            self.store.fail(server.state_key, ticket.number,
                            exc if is_refusal else None)
            if is_refusal:
                raise
            LOG.warning('Server %s: change %d has no verdict: %s', server.id,
                        ticket.number, exc.message)
            return None
        finally:
            self._reading.values.changed(server.id)
        revision = self.store.accept(
            server.state_key, ticket.number, accepted.applied,
            accepted.incarnation, accepted.passing)
        passing = accepted.passing.get(ticket.number, states.Passing())
        return Verdict(server.id, ticket.number, revision,
                       *(tuple(states.names(change, places)) for places in (
                           passing.commands, passing.edits)))

    def change(self, context, target, number):
        """Return a change of the target's guest as a client sees it."""
        server = self.owned(context, target, policy.CHANGE_SHOW)
        return history.change(self.store, server.state_key, number)

    def changes(self, context, target):
        """List the newest changes of the target's guest."""
        server = self.owned(context, target, policy.CHANGE_SHOW)
        return history.changes(self.store, server.state_key)

    def restore(self, context, target, revision):
        """Bring an earlier revision back; return a Verdict.

        A handler without a value at that revision needs its first one, so
        the guest gets its configuration again in that case.
        """
        server = self.owned(context, target, policy.STATE_RESTORE)
        now = self.store.read(server.state_key)
        then = history.at(self.store, server.state_key, revision)
        verdict = Verdict(server.id, now.number, now.revision)
        missing = ({name for name, _ in now.writes}
                   - {name for name, _ in then.writes})
        if missing or now.configuration != then.configuration:
            _require_no_vnf(server, target)
            self.fusing.require_no_part(server)
            found = then.configuration or _first(server)
            verdict = self._replace(server, found['config'],
                                    found['config_name'])
            now = states.State()
        wanted = [pair for pair in then.writes if pair not in now.writes]
        if wanted and verdict.revision is not None:
            verdict = self._write(server, wanted)
        self._tell(context, 'desired_state.restore', verdict,
                   restored=revision)
        return verdict

    def desired_state(self, context, target, project_id=None):
        """Return the target's states.State.

        :param project_id: the server's, if a service asks
        """
        server = self.owned(context, target, policy.STATE_SHOW, project_id)
        return self.store.read(server.state_key)

    def secrets_of(self, context, state):
        """Return {reference: value} of a state, for the service that starts
        its guest.
        """
        if not self._policy.allows_any(context, policy.SECRET_READ):
            raise errors.Forbidden(
                f'policy does not allow {policy.SECRET_READ} to be performed')
        return self._secrets.of(state.project_id, state.writes).values

    def create_secret(self, context, name, value):
        """Keep a value for the caller's project; return the secret."""
        self._policy.require(context, policy.SECRET_CREATE,
                             context.project_id)
        made = self._secrets.create(context.project_id, name, value)
        self._audit.tell(context, 'secret.create', {'secret_id': made['id']})
        return made

    def list_secrets(self, context):
        """List the secrets of the caller's project."""
        self._policy.require(context, policy.SECRET_LIST, context.project_id)
        return self._secrets.list(context.project_id)

    def show_secret(self, context, secret_id):
        """Return a secret of the caller's project, without its value."""
        self._policy.require(context, policy.SECRET_SHOW, context.project_id)
        return self._secrets.show(context.project_id, secret_id)

    def delete_secret(self, context, secret_id):
        """Delete a secret of the caller's project."""
        self._policy.require(context, policy.SECRET_DELETE,
                             context.project_id)
        self._secrets.delete(context.project_id, secret_id)
        self._audit.tell(context, 'secret.delete', {'secret_id': secret_id})

    def forget(self, context, target):
        """Forget the target's desired state; may be called twice."""
        key = self.owned(context, target, policy.STATE_DELETE).state_key
        self.store.reset(key)
        LOG.info('State %s: forgotten', keys.name(key))
        self._audit.tell(context, 'desired_state.delete',
                         {'state_id': keys.name(key)})

    def create_state(self, context, found):
        """Make a state of the caller's project; return its id.

        :param found: document.Configuration
        """
        self._policy.require(context, policy.STATE_CREATE,
                             context.project_id)
        state_id = self.store.create(
            context.project_id,
            *self._checked(context.project_id, found))
        self._audit.tell(context, 'desired_state.create',
                         {'state_id': state_id})
        return state_id

    def rebase_state(self, context, state_id, found, keep):
        """Give a state of the caller's project another configuration.

        :param found: document.Configuration
        :param keep: handlers whose writes stay, None for all
        :returns: False if the state was as wanted already
        """
        state = self._state(context, state_id, policy.STATE_CREATE)
        changed = self.store.rebase(
            state.key, *self._checked(state.project_id, found), keep)
        self._audit.tell(context, 'desired_state.update',
                         {'state_id': state_id})
        return changed

    def _checked(self, project_id, found):
        """Return configuration and writes; their secrets are the project's.
        """
        writes = states.merge([], [list(pair) for pair in found.writes])
        self._secrets.of(project_id, writes)
        return {'config': found.config,
                'config_name': found.config_name}, writes

    def show_state(self, context, state_id, project_id=None):
        """Return the states.State of an id.

        :param project_id: whose it is, if a service asks
        """
        return self._state(context, state_id, policy.STATE_SHOW, project_id)

    def delete_state(self, context, state_id, project_id=None):
        """Forget a state that user_data refers to.

        :param project_id: whose it is, if an operator asks
        """
        found = self._state(context, state_id, policy.STATE_DELETE,
                            project_id)
        self.store.delete(found.key)
        self._audit.tell(context, 'desired_state.delete',
                         {'state_id': state_id})

    def _state(self, context, state_id, rule, project_id=None):
        return self.authority.find(
            context, project_id or context.project_id,
            ownership.Target('states', state_id), rule)

    def start(self, context, state_id, started):
        """Note that a guest starts with a state, or with its server's own.

        :param started: dict number, revision, incarnation, server_id,
            project_id
        :raises errors.ApiError: (code outdated) if there is a newer one
        """
        is_own = state_id == started['server_id']
        found = self.authority.find(
            context, started['project_id'], ownership.Target(
                'servers' if is_own else 'states', state_id),
            policy.STATE_START)
        seen = states.State(started['revision'], number=started['number'])
        if not self.store.start(found.own_key if is_own else found.key, seen,
                                started['incarnation'],
                                started['server_id'],
                                started['project_id']):
            raise errors.ApiError(
                f'state {state_id}: there is a newer one', code='outdated',
                status=409)
        self.cloud.forget(started['server_id'])
        self._reading.values.changed(started['server_id'])

    def owned(self, context, target, rule, project_id=None):
        """Return the target's Server if the caller may do this to it."""
        return self.authority.find(context, project_id, target, rule)


def _first(server):
    """Return the configuration of a server's user_data."""
    try:
        found = document.parse(server.user_data)
    except document.DocumentError:
        raise errors.Dead(f'server {server.id}: its first configuration is'
                          ' not in user_data', code='no-such-revision')
    return {'config': found.config, 'config_name': found.config_name}


def _require_no_vnf(server, target):
    vnf_id = target.id if target.kind == 'vnfs' else server.vnf_id
    if vnf_id:
        raise errors.ApiError(
            f'server {server.id}: the configuration belongs to the descriptor'
            f' of VNF instance {vnf_id}, and a heal would install it again;'
            ' write handlers or update properties, or instantiate a changed'
            ' package', code='owned-by-vnf', status=409)

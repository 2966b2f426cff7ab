# SPDX-License-Identifier: Apache-2.0
"""Requests for the handlers of a fused chain's hops (docs/adr/0081)."""

from clickos_client import document
from clickos_client import flows
from oslo_log import log as logging

from clickos_api import errors
from clickos_api.state import fusions
from clickos_api.state import history
from clickos_api.state import states

LOG = logging.getLogger(__name__)


class Fusing:
    """Answers for servers while a chain is fused.

    :param service: service.Service
    """

    def __init__(self, service):
        self._service = service
        self.fusions = service.authority.fusions

    def of_hop(self, server):
        """Return (fused Server, fusions.Hop) of a hop's server, or None."""
        return self._service.authority.fused(server)

    def require_no_part(self, server):
        """Refuse what would not outlive a fusion, or would not be in it."""
        self.require_not_fused(server)
        found = self.fusions.of_state(server.state_key)
        if found:
            raise _refused(f'server {server.id}: is a hop of the fused chain'
                           f' {found.chain_id}; unfuse the chain first')

    def require_not_fused(self, server):
        """Refuse to change a fused guest by its own server."""
        found = self.fusions.of_fused(server.id)
        if found:
            raise _refused(f'server {server.id}: has the hops of the chain'
                           f' {found.chain_id}; write to the server of the'
                           ' hop, or unfuse the chain')

    def flows(self, source, targets, guest):
        """Return the source and the targets as clickos_client.flows has them.

        :param guest: makes one of a server
        """
        hops = {each.id: self.of_hop(each) for each in (source, *targets)}

        def part(server, other):
            """Return a server, as one of its hops for the other one."""
            found = hops[other.id]
            if found and found[0].id == server.id:
                return flows.Part(guest(server), found[1].prefix)
            return None

        parts = [part(source, target) for target in targets]
        return (next(filter(None, parts), None) or guest(source),
                [part(target, source) or guest(target) for target in targets])

    @staticmethod
    def show(found):
        """Return 'server' and 'hops' of a fused chain."""
        return {'server': found.server_id,
                'hops': [{'name': hop.name, 'group': hop.group_id}
                         for hop in found.hops]}

    def fuse(self, context, chain, servers, hops):
        """Let a guest answer for the hops of a chain.

        It gets the values of all hops.

        :param chain: as Neutron shows it
        :param servers: Server of the guest, and those of the hops
        :param hops: [(name, server id, group id)] in order
        """
        _require_groups(chain, hops)
        project_id, chain_id = chain['project_id'], chain['id']
        fused, *servers = servers
        for each in (fused, *servers):
            if each.project_id != project_id:
                raise errors.BadRequest(f'server {each.id}: is of another'
                                        f' project than chain {chain_id}')
            self.require_not_fused(each)
        _require_own_states(fused, servers)
        self.require_no_part(fused)
        self._service.limits.require_none(project_id, servers)
        found = fusions.Fusion(chain_id, fused.id, project_id, tuple(
            fusions.Hop(server.state_key, name, group)
            for server, (name, _, group) in zip(servers, hops)))
        self.fusions.add(found)
        try:
            # Limits that came meanwhile have seen no fusion.
            self._service.limits.require_none(project_id, servers)
            for server, hop in zip(servers, found.hops):
                self._bring(server, fused, hop)
        except Exception:
            self.fusions.remove(chain_id)
            raise
        self._tell(context, 'chain.fuse', found)
        return self.show(found)

    def _bring(self, server, fused, hop):
        """Write the values of a hop to the fused guest."""
        before = self._settled(server)
        values = _values(server, before)
        if values:
            self._service.changing.write_fused(fused, hop, values)
        if self._settled(server) != before:
            raise errors.Unavailable(
                f'server {server.id}: was changed during the fusion; try'
                ' again', code='busy')

    def _settled(self, server):
        """Return the state of a server without pending changes."""
        store = self._service.store
        newest = history.changes(store, server.state_key)[:1]
        if newest and newest[0]['status'] == states.PENDING:
            raise errors.Unavailable(
                f'server {server.id}: change {newest[0]["number"]} has no'
                ' verdict yet; try again', code='busy')
        return store.read(server.state_key)

    def unfuse(self, context, found):
        """Let the hops' own guests answer again."""
        self.fusions.remove(found.chain_id)
        self._tell(context, 'chain.unfuse', found)

    def _tell(self, context, event, found):
        LOG.info('Chain %s: %s: server %s', found.chain_id, event,
                 found.server_id)
        self._service.audit.notify(context, event, {
            'chain_id': found.chain_id, 'server_id': found.server_id})


def _require_groups(chain, hops):
    """Refuse hops that are no port pair groups of the chain."""
    for name, _server_id, group_id in hops:
        if group_id not in chain['port_pair_groups']:
            raise errors.NotFound(
                f'hop {name}: group {group_id} is not a hop of chain'
                f' {chain["id"]}', code='no-such-group')


def _require_own_states(fused, servers):
    """Refuse a guest with two parts: its writes would wait for each other.

    Servers whose user_data refers to the same state are the same guest here.
    """
    if fused.id in {each.id for each in servers}:
        raise errors.BadRequest(f'server {fused.id}: is a hop itself')
    known = set()
    for each in (fused, *servers):
        if each.state_key in known:
            raise errors.BadRequest(f'server {each.id}: has the same state as'
                                    ' another server of the fusion')
        known.add(each.state_key)


def _values(server, state):
    """Return the writes that are in force at a hop's own guest."""
    if server.has_reference or state.configuration:
        return state.writes
    try:
        first = document.parse(server.user_data)
    except document.DocumentError:
        return state.writes   # the text came with the image
    return document.overlay(first.writes, state.writes)


def _refused(message):
    return errors.ApiError(message, code='fused', status=409)

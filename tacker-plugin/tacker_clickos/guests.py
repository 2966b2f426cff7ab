# SPDX-License-Identifier: Apache-2.0
"""Makes, heals and removes the guests of one VNF."""

import dataclasses

from clickos_client import document
from oslo_log import log as logging

from tacker_clickos.clickgen import document as clickgen
from tacker_clickos import clickos_api
from tacker_clickos import handover
from tacker_clickos import in_place
from tacker_clickos import links
from tacker_clickos import networks
from tacker_clickos import pairs
from tacker_clickos import placement
from tacker_clickos import ports
from tacker_clickos import servers
from tacker_clickos import state
from tacker_clickos.vnfd import values as vnfd_values

LOG = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class GuestSpec:
    """A guest to be made.

    The name is unique in the VNF ("VDU1-0"). The links are
    {CP name: links.Link}; virtual has those of a pair's common addresses. The
    values are checked property values of this guest. A state that it has
    keeps the writes of the handlers in keep, or all with None; they replace
    those of the values.
    """

    name: str
    vdu: object
    links: dict
    values: dict
    keep: set | None
    virtual: dict = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Guest:
    """A requested guest, with its ports by CP name."""

    name: str
    server: object
    ports: dict


def guest_specs(vdus, vnfcs, request, values, keep=None):
    """Return the GuestSpec of each VNFC.

    :param vdus: {VDU name: model.Vdu}
    :param vnfcs: named vnfcResourceInfo
    :param request: InstantiateVnfRequest, which names the networks
    :param keep: {VDU name: handlers}, see GuestSpec; None for all
    """
    return [_wish(state.name(vnfc), vdus[vnfc.vdu_id], request, values, keep)
            for vnfc in vnfcs]


def _wish(name, vdu, request, values, keep):
    return GuestSpec(name=name, vdu=vdu,
                     values=vnfd_values.of_guest(vdu, values, name),
                     links=links.of_guest(vdu, request,
                                          int(name.rpartition('-')[2])),
                     keep=keep and keep[vdu.name],
                     virtual=links.of_pair(vdu, request))


class Guests(object):
    """The guests of one VNF.

    :param connection: openstacksdk connection of the VIM
    :param vnf_id: the VNF instance's id
    :param vnf_name: its name, if guests are to be made
    :param record: its state.Record, if it is instantiated; boot() changes it
    :param states: {name: id} of the guests' states, see state.state_ids();
        clickos-api itself removes others a day after their servers
    """

    def __init__(self, connection, vnf_id, vnf_name=None, record=None,
                 states=None):
        self._connection = connection
        self._vnf_id = vnf_id
        self.record = record or state.Record()
        self.states = dict(states or {})
        self._marks = servers.marks_of(vnf_id, vnf_name)
        self._api = clickos_api.Client(connection)

    def boot(self, specs):
        """Start guests and wait until all run; return them.

        If one fails the servers made here are removed again. Their ports
        stay: the caller knows whether they are wanted for another attempt.
        """
        self._check_pairs(specs)
        self._clear(specs)
        made = []
        try:
            for spec in specs:
                if made and pairs.placement(spec.vdu):
                    servers.wait_placed(self._connection, made[-1].server)
                made.append(self._start(spec))
            servers.wait_active(self._connection,
                                [guest.server for guest in made])
        except Exception:
            self._undo(made)
            raise
        return made

    def heal_each(self, specs, asked=None):
        """Make guests again; generate them, those that have died first.

        Of a pair, such a guest gets the flows of the other one, and forwards
        while that one begins again.

        :param asked: see heal()
        """
        running = {server.name for server in
                   servers.of_vnf(self._connection, self._vnf_id)
                   if server.status == 'ACTIVE'}
        for spec in sorted(specs, key=lambda spec:
                           self._server_name(spec.name) in running):
            yield self.heal(spec, asked)

    def heal(self, spec, asked=None):
        """Make a guest again, in its server or else in a new one; return it.

        :param asked: {server id: request} of reboots that the watcher asked
            for
        :raises: GuestFailed if the old guest runs on; other errors if there
            is no guest
        """
        self._check_pairs([spec])
        if spec.virtual:
            self._hand_over(spec.name)
        return (self._heal_in_place(spec, asked or {})
                or self.boot([spec])[0])

    def _hand_over(self, name):
        """Let the other guest of a pair forward while this one begins again.
        """
        own, other = [servers.named(self._connection, self._vnf_id,
                                    self._server_name(each))
                      for each in (name, pairs.other(name))]
        if own and other and {own.status, other.status} == {'ACTIVE'}:
            handover.hand_over(self._api, own.id, other.id)

    def _check_pairs(self, specs):
        """Refuse networks that pairs cannot use, before anything is made."""
        wanted = {pairs.virtual_name(spec.vdu.name, cp): link
                  for spec in specs for cp, link in spec.virtual.items()}
        existing = (ports.of_vnf(self._connection, self._vnf_id)
                    if wanted else {})
        pairs.require_addresses(self._connection, {
            name: link for name, link in wanted.items()
            if name not in existing})

    def _heal_in_place(self, spec, asked):
        """Return the guest if its server could stay, else None."""
        server = servers.named(self._connection, self._vnf_id,
                               self._server_name(spec.name))
        by_cp = server and self._ports_of(server, spec)
        # Another package may ask for another host.
        has_place = spec.keep is None or not spec.vdu.placement
        if not by_cp or not has_place or not in_place.is_possible(
                self._connection, server, spec.vdu):
            return None
        known, request = self.states.get(spec.name), asked.get(server.id)
        changed = self._give_state(spec, by_cp)
        if self.states[spec.name] != known:
            return None
        is_done = request and not changed and in_place.is_done(
            self._connection, server, request)
        if not is_done and not in_place.reboot(self._connection, server):
            return None
        LOG.info('VNF %s: guest %s began again in server %s', self._vnf_id,
                 spec.name, server.id)
        return Guest(spec.name, server, by_cp)

    def _ports_of(self, server, spec):
        """Return {CP: port}; None if the server lacks one."""
        existing = ports.of_vnf(self._connection, self._vnf_id)
        found = {cp: existing.get('%s-%s' % (spec.name, cp))
                 for cp in spec.links}
        if not all(port and port.device_id == server.id
                   for port in found.values()):
            return None
        virtual = self._virtual_ports(spec)
        for cp, port in found.items():
            self._settle(port, spec.vdu, cp, virtual, existing)
        return found

    def _settle(self, port, vdu, cp, virtual, existing):
        """Let a port that is there be as the package wants it.

        :param existing: {name: port} of the VNF
        """
        routers = {each.mac_address for name, each in existing.items()
                   if pairs.is_virtual(name)}
        ports.settle_pairs(self._connection, port, vdu, cp, virtual.get(cp),
                           routers)
        ports.declare(self._connection, port, vdu, cp)

    def _virtual_ports(self, spec):
        """Return {CP: port} of the addresses of a pair."""
        return {cp: pairs.virtual_port(self._connection, self._vnf_id,
                                       spec.vdu, cp, link)
                for cp, link in self._connected(spec.virtual).items()}

    def _clear(self, specs):
        """Remove servers of these names, which an interrupted try has left.
        """
        names = {self._server_name(spec.name) for spec in specs}
        servers.delete(self._connection, [
            server for server in
            servers.of_vnf(self._connection, self._vnf_id)
            if server.name in names])

    def _undo(self, made):
        """Remove servers; the error that led here is the one to report."""
        try:
            servers.delete(self._connection,
                           [guest.server for guest in made])
        except Exception as error:
            LOG.warning('VNF %s: a server that did not start is left: %s',
                        self._vnf_id, error)

    def _start(self, spec):
        by_cp = self._ports(spec)
        self._give_state(spec, by_cp)
        server = servers.create(
            self._connection, self._marks, self._server_name(spec.name),
            spec.vdu, by_cp.values(),
            document.referring(self.states[spec.name]),
            placement.hints(self._connection, self._vnf_id,
                            pairs.placement(spec.vdu)))
        LOG.info('VNF %s: guest %s is server %s', self._vnf_id, spec.name,
                 server.id)
        return Guest(spec.name, server, by_cp)

    def _give_state(self, spec, by_cp):
        """Give the guest's state a configuration, or make its state.

        :returns: False if the state is as it was
        """
        virtual = self._virtual_ports(spec)
        interfaces = [ports.interface(self._connection, cp,
                                      virtual.get(cp, port),
                                      spec.vdu.point(cp))
                      for cp, port in by_cp.items()]
        configuration = clickgen.render(
            spec.vdu.configuration, interfaces, spec.values,
            self._pair(spec, virtual, by_cp) if virtual else '')
        known = self.states.get(spec.name)
        changed = known and self._api.rebase_state(known, configuration,
                                                   spec.keep)
        if changed is None:
            self.states[spec.name] = self._api.create_state(configuration)
        return changed is not False

    def _pair(self, spec, virtual, by_cp):
        """Return the statements for a guest of a pair."""
        peer = self._ports(spec, pairs.other(spec.name), virtual)
        sides = [pairs.Side(virtual[cp], own, peer[cp])
                 for cp, own in by_cp.items()]
        key = self.record.keys.setdefault(spec.vdu.name, pairs.new_key())
        return pairs.statements(spec.name, sides, key)

    def _ports(self, spec, guest=None, virtual=None):
        """Return {CP: port} in vif order; ports of an earlier guest stay.

        :param guest: the name of the other guest of a pair, for its ports
        :param virtual: {CP: port} of the pair's addresses, if known
        """
        if virtual is None:
            virtual = self._virtual_ports(spec)
        existing = ports.of_vnf(self._connection, self._vnf_id)
        found = {}
        for cp, link in self._connected(spec.links).items():
            name = '%s-%s' % (guest or spec.name, cp)
            if name in existing:
                found[cp] = existing[name]
                if not guest:
                    ports.release(self._connection, found[cp])
                self._settle(found[cp], spec.vdu, cp, virtual, existing)
            else:
                found[cp] = ports.create(
                    self._connection, self._vnf_id, name, link, spec.vdu,
                    cp, self.record, virtual.get(cp))
        return found

    def _connected(self, links):
        """Return links with the networks of internal ones, made if need be.
        """
        own = {link.internal.name: link.internal for link in links.values()
               if link.internal and not link.network_id}
        made = networks.ensure(self._connection, self._vnf_id, own,
                               self.record) if own else {}
        return {cp: link if link.network_id else dataclasses.replace(
            link, network_id=made[link.internal.name])
            for cp, link in links.items()}

    def only(self, names):
        """Remove the servers of all other guests; return the Guests found.

        Their ports are not looked up.
        """
        servers_of = {self._server_name(name): name for name in names}
        found = servers.of_vnf(self._connection, self._vnf_id)
        servers.delete(self._connection, [
            server for server in found if server.name not in servers_of])
        return {servers_of[server.name]: Guest(
            servers_of[server.name], server, {})
            for server in found if server.name in servers_of}

    def remove(self, server_ids=None):
        """Remove servers, all of the VNF's without a list; ports stay."""
        found = servers.of_vnf(self._connection, self._vnf_id)
        servers.delete(self._connection,
                       [server for server in found
                        if server_ids is None or server.id in server_ids])

    def drop(self, vdus, names):
        """Remove guests by name, ports and state; may be called again.

        :param vdus: {VDU name: model.Vdu}
        :param names: such as VDU1-2
        """
        found = servers.of_vnf(self._connection, self._vnf_id)
        marked = {self._server_name(name) for name in names}
        servers.delete(self._connection, [server for server in found
                                          if server.name in marked])
        gone = _port_names(vdus, names)
        existing = ports.all_of_vnf(self._connection, self._vnf_id)
        ports.delete(self._connection, [port for port in existing
                                        if port.name in gone])
        self.forget(names)

    def keep(self, vdus, names):
        """Remove servers, ports, states of all other guests of the VNF.

        :param vdus: {VDU name: model.Vdu}
        """
        wanted = {self._server_name(name) for name in names}
        others = [server for server in
                  servers.of_vnf(self._connection, self._vnf_id)
                  if server.name not in wanted]
        servers.delete(self._connection, others)
        kept = _port_names(vdus, names)
        existing = ports.all_of_vnf(self._connection, self._vnf_id)
        ports.delete(self._connection, [
            port for port in existing if port.name not in kept
            and not pairs.is_virtual(port.name)])
        self._forget_those_of(others)

    def keep_pairs(self, vdus):
        """Remove the addresses of VDUs that are no pairs any more.

        :param vdus: {VDU name: model.Vdu}, of all guests
        """
        wanted = {pairs.virtual_name(vdu.name, cp) for vdu in vdus.values()
                  if vdu.configuration.pair for cp in vdu.cps}
        existing = ports.all_of_vnf(self._connection, self._vnf_id)
        ports.delete(self._connection, [
            port for port in existing if pairs.is_virtual(port.name)
            and port.name not in wanted])

    def forget(self, names):
        """Delete the states of guests by name; may be called again."""
        for name in names:
            state_id = self.states.pop(name, None)
            if state_id:
                self._api.delete_state(state_id)

    def _forget_those_of(self, gone):
        self.forget([server.name.removesuffix('-' + self._vnf_id)
                     for server in gone])

    def _server_name(self, name):
        return '%s-%s' % (name, self._vnf_id)

    def sweep(self):
        """Remove all of the VNF that is there; may be called again.

        :returns: whether there was one
        """
        found = servers.of_vnf(self._connection, self._vnf_id)
        servers.delete(self._connection, found)
        existing = ports.all_of_vnf(self._connection, self._vnf_id)
        ports.delete(self._connection, existing)
        networks.remove(self._connection, self._vnf_id)
        placement.remove(self._connection, self._vnf_id)
        self._forget_those_of(found)
        return bool(found or existing)


def _port_names(vdus, names):
    """Return the names of the ports of guests, such as VDU1-0-left."""
    return {'%s-%s' % (name, cp) for name in names
            for cp in vdus[name.rpartition('-')[0]].cps}

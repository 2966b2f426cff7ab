# SPDX-License-Identifier: Apache-2.0
"""Makes and removes the guests of one VNF: ports, document, server."""

import dataclasses

from oslo_log import log as logging

from tacker_clickos.clickgen import document
from tacker_clickos import clickos_api
from tacker_clickos import links
from tacker_clickos import ports
from tacker_clickos import servers
from tacker_clickos import state
from tacker_clickos.vnfd import values as vnfd_values

LOG = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class Wish:
    """A guest to be made.

    The name is unique in the VNF ("VDU1-0"). links is {CP name: links.Link},
    values are checked property values of this guest. writes replace those
    of the values.
    """

    name: str
    vdu: object
    links: dict
    values: dict
    writes: list


@dataclasses.dataclass(frozen=True)
class Guest:
    """A requested guest, with its ports by CP name.

    later are handler writes that user_data cannot carry.
    """

    name: str
    server: object
    ports: dict
    later: list = dataclasses.field(default_factory=list)


def wishes(vdus, vnfcs, request, values, saved):
    """Return the Wish of each VNFC.

    :param vdus: {VDU name: model.Vdu}
    :param vnfcs: named vnfcResourceInfo
    :param request: InstantiateVnfRequest, which names the networks
    :param saved: {VNFC name: handler writes}
    """
    return [_wish(state.name(vnfc), vdus[vnfc.vdu_id], request, values, saved)
            for vnfc in vnfcs]


def _wish(name, vdu, request, values, saved):
    number = int(name.rpartition('-')[2])
    return Wish(name=name, vdu=vdu,
                values=vnfd_values.of_guest(vdu, values, name),
                links=links.resolve(vdu, request, number),
                writes=saved.get(name, []))


class Guests(object):
    """The guests of one VNF.

    :param connection: openstacksdk connection of the VIM
    :param vnf_id: the VNF instance's id
    """

    def __init__(self, connection, vnf_id):
        self._connection = connection
        self._vnf_id = vnf_id

    def boot(self, wishes):
        """Start guests and wait until all run; return them.

        If one fails the servers made here are removed again. Their ports
        stay: the caller knows whether they are wanted for another attempt.
        """
        made = []
        try:
            for wish in wishes:
                made.append(self._start(wish))
            servers.wait_active(self._connection,
                                [guest.server for guest in made])
            self._complete(made)
        except Exception:
            self._undo(made)
            raise
        return made

    def _complete(self, made):
        """Write what user_data had no room for, or must not hold."""
        api = clickos_api.Client(self._connection)
        for guest in made:
            if guest.later:
                api.write(guest.server.id, guest.later)

    def _undo(self, made):
        """Remove servers; the error that led here is the one to report."""
        try:
            servers.delete(self._connection,
                           [guest.server for guest in made])
        except Exception as error:
            LOG.warning('VNF %s: a server that did not start is left: %s',
                        self._vnf_id, error)

    def _start(self, wish):
        by_cp = self._ports(wish)
        interfaces = [ports.interface(self._connection, cp, port)
                      for cp, port in by_cp.items()]
        first, later = document.split(document.render(
            wish.vdu.configuration, interfaces, wish.values, wish.writes))
        server = servers.create(
            self._connection, self._vnf_id, self._server_name(wish.name),
            wish.vdu, by_cp.values(), document.user_data(first))
        LOG.info('VNF %s: guest %s is server %s', self._vnf_id, wish.name,
                 server.id)
        return Guest(wish.name, server, by_cp, later)

    def _ports(self, wish):
        """Return {CP: port} in vif order; ports of an earlier guest stay."""
        existing = ports.of_vnf(self._connection, self._vnf_id)
        found = {}
        for cp, link in wish.links.items():
            name = '%s-%s' % (wish.name, cp)
            found[cp] = existing.get(name) or ports.create(
                self._connection, self._vnf_id, name, link,
                wish.vdu.configuration)
        return found

    def remove(self, server_ids=None):
        """Remove servers, all of the VNF's without a list; ports stay."""
        found = servers.of_vnf(self._connection, self._vnf_id)
        servers.delete(self._connection,
                       [server for server in found
                        if server_ids is None or server.id in server_ids])

    def drop(self, vdus, names):
        """Remove guests by name with their ports; may be called again.

        :param vdus: {VDU name: model.Vdu}
        :param names: such as VDU1-2
        """
        found = servers.of_vnf(self._connection, self._vnf_id)
        marked = {self._server_name(name) for name in names}
        servers.delete(self._connection, [server for server in found
                                          if server.name in marked])
        gone = {'%s-%s' % (name, cp) for name in names
                for cp in vdus[name.rpartition('-')[0]].cps}
        existing = ports.of_vnf(self._connection, self._vnf_id)
        ports.delete(self._connection, [port for name, port in
                                        existing.items() if name in gone])

    def keep(self, names):
        """Remove the servers and ports of all other guests of the VNF."""
        wanted = {self._server_name(name) for name in names}
        found = servers.of_vnf(self._connection, self._vnf_id)
        servers.delete(self._connection, [server for server in found
                                          if server.name not in wanted])
        prefixes = tuple('%s-' % name for name in names)
        existing = ports.of_vnf(self._connection, self._vnf_id)
        ports.delete(self._connection, [
            port for name, port in existing.items()
            if not name.startswith(prefixes)])

    def _server_name(self, name):
        return '%s-%s' % (name, self._vnf_id)

    def sweep(self):
        """Remove every server and port of the VNF; may be called again.

        :returns: whether there was one
        """
        found = servers.of_vnf(self._connection, self._vnf_id)
        servers.delete(self._connection, found)
        existing = ports.of_vnf(self._connection, self._vnf_id).values()
        ports.delete(self._connection, existing)
        return bool(found or existing)

# SPDX-License-Identifier: Apache-2.0
"""Reports to Neutron which ports the switch forwards for (docs/adr/0021)."""

from oslo_log import log as logging

LOG = logging.getLogger(__name__)

#: Seconds to the next look while a port is about to forward, and until a
#: port that was missing is reported.
_SOON_S = 0.2
_AGAIN_S = 1
#: Looks in a row that are so early.
_SOON_LOOKS = 50
#: State of a guest that Nova moves here when all its ports are reported.
_ARRIVING = 'arriving'
#: States of a guest whose ports forward.
_LIVE = frozenset(('running', 'paused', 'unreachable', _ARRIVING))


class Wiring:
    """Compares the ports that forward with those that Neutron calls active."""

    def __init__(self, client, neutron, device_ports, refused_ports=set):
        """Report ports.

        :param client: CosmosClient
        :param neutron: ports.Neutron
        :param device_ports: returns the ids of the attached devices' ports
        :param refused_ports: returns the ids of the ports whose rules the
            switch cannot take: they are never reported as active
        """
        self._client = client
        self._neutron = neutron
        self._device_ports = device_ports
        self._refused_ports = refused_ports
        self._missing = set()
        self._early = 0

    def run_once(self):
        """Report ports that forward; after two looks those that do not.

        :returns: seconds to the next look, None for the usual ones
        :raises: CosmosError, NeutronUnavailable
        """
        guests, devices = self._guests(), self._device_ports()
        active = self._neutron.active_ports()
        linked = devices.union(*(_ports(guest, 'up') for guest in guests))
        up = devices - active
        for guest in guests:
            up |= self._new(guest, active)
        linked -= self._refused_ports()
        up -= self._refused_ports()
        gone = active - linked
        self._report(up, gone & self._missing)
        self._missing = gone - self._missing
        return self._pause(bool(linked - active - up))

    def _guests(self):
        """:returns: the guests whose ports forward"""
        return [guest for guest in self._client.call('list')['guests']
                if guest['state'] in _LIVE]

    def _new(self, guest, active):
        """:returns: ids of a guest's ports to report as active"""
        new = _ports(guest, 'up') - active
        if new:
            new &= self._forwarding(guest['uuid'])
        if guest['state'] == _ARRIVING:
            # Nova waits for disabled ports, too; Neutron leaves them as
            # they are.
            new |= _ports(guest, 'down')
        return new

    def _forwarding(self, uuid):
        """:returns: ids of a guest's ports that drop not all frames"""
        return {port['port_id']
                for port in self._client.call('vif-list', uuid=uuid)['ports']
                if port['link_up'] and not port['closed']}

    def _report(self, up, down):
        if up or down:
            self._neutron.report_ports(sorted(up), sorted(down))
            LOG.info('Ports up: %(up)s; down: %(down)s',
                     {'up': sorted(up), 'down': sorted(down)})

    def _pause(self, waiting):
        self._early = self._early + 1 if waiting else 0
        if 0 < self._early <= _SOON_LOOKS:
            return _SOON_S
        return _AGAIN_S if self._missing else None


def _ports(guest, link):
    """:returns: ids of a guest's ports whose link is so"""
    return {vif['port_id'] for vif in guest['vifs']
            if vif.get('port_id') and vif['link'] == link}

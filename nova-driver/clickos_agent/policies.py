# SPDX-License-Identifier: Apache-2.0
"""Gives the ports of guests the rules and limits that Neutron has.

cosmosd makes a filtered port with a filter that permits nothing. The agent
sets addresses, limits and rules as soon as the guest runs, after a hint of
Neutron, and at each look. The switch keeps what it has already.

Before rules open ports, the switch gets the chains that it lost: it judges
them by the addresses of their ports.
"""

import collections

from cosmos_client import CosmosError
from oslo_log import log as logging

from clickos_agent import ports

LOG = logging.getLogger(__name__)

#: A vif: its guest, the names of its port and the segment.
Port = collections.namedtuple('Port', 'port_id uuid switch port segment')
#: Seconds to the next look while ports are held, and how many are so early.
_SOON_S = 1
_SOON_LOOKS = 10


class Policies:
    """Sets the allowed addresses, limits and filters of this host's ports."""

    def __init__(self, client, neutron, restore):
        """Set what Neutron has.

        :param client: CosmosClient
        :param neutron: ports.Neutron
        :param restore: sets lost chains; returns the places of the ports that
            do not open until it can, see chains.Chains
        """
        self._client = client
        self._neutron = neutron
        self._restore = restore
        self._refused = {}
        self._early = 0

    def refused(self):
        """:returns: ids of the ports whose rules the switch cannot take"""
        return set(self._refused)

    def run_once(self):
        """Set the addresses, limits and rules of all ports.

        :returns: seconds to the next look, None for the usual ones
        :raises: CosmosError, NeutronUnavailable
        """
        policies, refused = self._neutron.policies(self._ports())
        for port_id in refused.keys() - self._refused.keys():
            LOG.error('Port %(port)s is not active, and keeps the rules that '
                      'it has: %(why)s',
                      {'port': port_id, 'why': refused[port_id]})
        self._refused = refused
        ready = {port: rules
                 for port, (rules, limits, guard) in policies.items()
                 if self._set(port, 'port-guard', **guard)
                 and self._set(port, 'port-limit', limits=limits)}
        held = self._restore()
        # The rules come last: they may open the port.
        for port, rules in ready.items():
            if not self._stays_closed(port, held) \
                    and not self._set(port, 'port-filter', rules=rules):
                held = self._restore()    # by now it may be another switch
        self._early = self._early + 1 if held else 0
        return _SOON_S if 0 < self._early <= _SOON_LOOKS else None

    def _ports(self):
        return [Port(vif['port_id'], guest['uuid'], vif['switch'],
                     vif['port'], vif['segment'])
                for guest in self._client.call('list')['guests']
                for vif in guest['vifs']
                if vif.get('port_id') and vif['link'] != ports.REMOVED]

    def _stays_closed(self, port, held):
        """:returns: whether a port is held that has no rules yet"""
        if held.isdisjoint({(port.switch, port.port),
                            (port.switch, port.segment)}):
            return False
        try:
            found = self._client.call('vif-list', uuid=port.uuid)['ports']
        except CosmosError as e:
            LOG.warning('Guest %(guest)s: %(why)s',
                        {'guest': port.uuid, 'why': e})
            return True
        # A port that the switch does not have yet comes without rules.
        return not any(each['port_id'] == port.port_id and not each['closed']
                       for each in found)

    def _set(self, port, verb, **arguments):
        """:returns: whether the switch took it"""
        try:
            self._client.call(verb, switch=port.switch, port=port.port,
                              **arguments)
        except CosmosError as e:
            LOG.warning('Port %(port)s of guest %(guest)s: %(why)s',
                        {'port': port.port_id, 'guest': port.uuid, 'why': e})
            return False
        return True

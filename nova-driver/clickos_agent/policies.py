# SPDX-License-Identifier: Apache-2.0
"""Gives the ports of guests the rules and limits that Neutron has.

cosmosd makes a filtered port with a filter that permits nothing. The agent
sets addresses, limits and rules as soon as the guest runs, after a hint of
Neutron, and at each look. The switch keeps what it has already.
"""

import collections

from cosmos_client import CosmosError
from oslo_log import log as logging

from clickos_agent import ports

LOG = logging.getLogger(__name__)

#: A vif: its guest and the names of its port.
Port = collections.namedtuple('Port', 'port_id uuid switch port')


class Policies:
    """Sets the allowed addresses, limits and filters of this host's ports."""

    def __init__(self, client, neutron):
        """Set what Neutron has.

        :param client: CosmosClient
        :param neutron: ports.Neutron
        """
        self._client = client
        self._neutron = neutron
        self._refused = {}

    def refused(self):
        """:returns: ids of the ports whose rules the switch cannot take"""
        return set(self._refused)

    def run_once(self):
        """Set the addresses, limits and rules of all ports.

        :raises: CosmosError, NeutronUnavailable
        """
        policies, refused = self._neutron.policies(self._ports())
        for port_id in refused.keys() - self._refused.keys():
            LOG.error('Port %(port)s is not active, and keeps the rules that '
                      'it has: %(why)s',
                      {'port': port_id, 'why': refused[port_id]})
        self._refused = refused
        for port, policy in policies.items():
            self._apply(port, *policy)

    def _ports(self):
        return [Port(vif['port_id'], guest['uuid'], vif['switch'],
                     vif['port'])
                for guest in self._client.call('list')['guests']
                for vif in guest['vifs']
                if vif.get('port_id') and vif['link'] != ports.REMOVED]

    def _apply(self, port, rules, limits, guard):
        try:
            # The rules come last: they may open the port.
            self._client.call('port-guard', switch=port.switch, port=port.port,
                              **guard)
            self._client.call('port-limit', switch=port.switch, port=port.port,
                              limits=limits)
            self._client.call('port-filter', switch=port.switch,
                              port=port.port, rules=rules)
        except CosmosError as e:
            LOG.warning('Port %(port)s of guest %(guest)s: %(why)s',
                        {'port': port.port_id, 'guest': port.uuid, 'why': e})

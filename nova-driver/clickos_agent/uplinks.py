# SPDX-License-Identifier: Apache-2.0
"""Leads the networks of this host's guests to the other hosts.

Neutron names the networks that have ports here, and the hosts of each
(docs/adr/0054). A network gets an uplink with its first port and loses it
after the last. Two looks in a row have to miss the network: a replica of
Neutron's database may lag behind a binding.
"""

from clickos_client import neutron_rpc
from cosmos_client import CosmosError
from oslo_log import log as logging

LOG = logging.getLogger(__name__)


class Uplinks:
    """Sets the uplinks of this host's segments."""

    def __init__(self, client, neutron, interfaces, tunnel_ip):
        """Set uplinks.

        :param client: CosmosClient
        :param neutron: ports.Neutron
        :param interfaces: interface of this host by physical network
        :param tunnel_ip: this host's address for VXLAN, or None
        """
        self._client = client
        self._neutron = neutron
        self._interfaces = interfaces
        self._tunnel_ip = tunnel_ip
        self._suspects = set()

    def run_once(self):
        """Set what Neutron wants; remove what two looks found unused.

        :raises: CosmosError, NeutronUnavailable
        """
        present = {_place(uplink): uplink['uplink']
                   for uplink in self._client.call('uplink-list')['uplinks']}
        networks = self._neutron.networks()
        used = {_place(network) for network in networks}
        for network in networks:
            uplink = self._uplink(network)
            if uplink and present.get(_place(network)) != uplink:
                self._try('uplink-set', *_place(network), uplink=uplink)
        unused = set(present) - used
        for place in unused & self._suspects:
            self._try('uplink-remove', *place)
        self._suspects = unused - self._suspects

    def _uplink(self, network):
        """:returns: the far end of a network, None if it has none here"""
        kind = network['network_type']
        if kind == neutron_rpc.VXLAN and self._tunnel_ip:
            return {'vxlan': {'vni': network['segmentation_id'],
                              'local': self._tunnel_ip,
                              'peers': network['peers']}}
        interface = self._interfaces.get(network['physical_network'])
        if kind == neutron_rpc.VLAN and interface:
            return {'ifname': interface, 'vlan': network['segmentation_id']}
        if kind == neutron_rpc.FLAT and interface:
            return {'ifname': interface}
        return None

    def _try(self, verb, switch, segment, **args):
        place = {'switch': switch, 'segment': segment}
        try:
            self._client.call(verb, **place, **args)
            LOG.info('Segment %(segment)s of %(switch)s: uplink changed',
                     place)
        except CosmosError as e:
            LOG.error('Segment %(segment)s of %(switch)s has no connection '
                      'with other hosts: %(why)s', {**place, 'why': e})


def _place(of):
    return of['switch'], of['segment']

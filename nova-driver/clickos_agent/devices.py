# SPDX-License-Identifier: Apache-2.0
"""Attaches the devices of Neutron's DHCP and L3 agents to the switch.

Their interface driver makes a veth pair (neutron_clickos.interface). The
outer end appears some time after Neutron has bound its port.
"""

import pathlib

from clickos_client import neutron_rpc
from cosmos_client import CosmosError
from oslo_log import log as logging

LOG = logging.getLogger(__name__)

#: Seconds to the next look while an interface is missing.
_SOON_S = 0.5
#: Looks in a row that are so early.
_SOON_LOOKS = 60
_INTERFACES = '/sys/class/net'


class Devices:
    """Keeps the switch ports of a host's DHCP servers and routers."""

    def __init__(self, client, neutron, interfaces=_INTERFACES):
        """Keep ports.

        :param client: CosmosClient
        :param neutron: ports.Neutron
        :param interfaces: the kernel's folder of interfaces
        """
        self._client = client
        self._neutron = neutron
        self._interfaces = pathlib.Path(interfaces)
        #: what was attached, with the interface's number, by port
        self._attached = {}
        self._ports = frozenset()
        self._suspects = set()
        self._early = 0

    def ports(self):
        """:returns: the ids of the ports whose devices are attached"""
        return set(self._ports)

    def run_once(self):
        """Attach new devices; detach those that two looks found gone.

        :returns: seconds to the next look, None for the usual ones
        :raises: CosmosError, NeutronUnavailable
        """
        present = {(device['switch'], device['port'])
                   for device in self._client.call('device-list')['devices']}
        devices = self._neutron.devices()
        missing = [device for device in devices
                   if not self._attach(device, present)]
        self._ports = frozenset(
            device['port'] for device in devices
            if _place(device) in self._attached and device not in missing)
        gone = present - {_place(device) for device in devices}
        for place in gone & self._suspects:
            self._try(place[1], 'device-remove', switch=place[0],
                      port=place[1])
            self._attached.pop(place, None)
        self._suspects = gone - self._suspects
        self._early = self._early + 1 if missing else 0
        return _SOON_S if 0 < self._early <= _SOON_LOOKS else None

    def _attach(self, device, present):
        """Return whether the device has its interface."""
        ifname, place = neutron_rpc.device(device['port']), _place(device)
        number = self._number(ifname)
        wanted = (number, device['segment'], device['mac'])
        if number is None:
            return False
        # An interface that was created again has another number.
        if place not in present or self._attached.get(place) != wanted:
            if self._try(ifname, 'device-set', switch=place[0], port=place[1],
                         segment=device['segment'], mac=device['mac'],
                         ifname=ifname):
                self._attached[place] = wanted
        return True

    def _number(self, ifname):
        try:
            return int((self._interfaces / ifname / 'ifindex').read_text())
        except (OSError, ValueError):
            return None

    def _try(self, name, verb, **args):
        try:
            self._client.call(verb, **args)
        except CosmosError as e:
            LOG.error('Device %(name)s: %(why)s', {'name': name, 'why': e})
            return False
        LOG.info('Device %s: its switch port changed', name)
        return True


def _place(device):
    """:returns: the switch, and the port's name there"""
    return device['switch'], 'd' + device['port'][:11]

# SPDX-License-Identifier: Apache-2.0
"""The network between the Xen hosts and this machine: their last cards.

::

    valed [address 2] eth5 of dom0 === tap, bridge === valed [address 1]
    valed [address 3] eth5 of dom0 === tap, same bridge

The addresses come from the range for benchmarks (RFC 2544), of which
host/underlay.py has the other half. Two labs on one machine have different
ones.
"""

import hashlib
import ipaddress
import os

from clickos_lab.config import hosts
from clickos_lab import shell
from clickos_lab.xen import qemu

#: The last card of a Xen host.
INTERFACE = f'eth{qemu.Machine().uplinks}'
_RANGE = ipaddress.ip_network('198.19.0.0/16')
_PREFIX = 28
#: All hosts come from one snapshot, and with the same addresses.
_MAC = '02:00:00:00:00:{:02x}'


class Cable:
    """One lab's network between its Xen hosts and this machine."""

    def __init__(self, state):
        digest = hashlib.sha256(str(state.root).encode()).hexdigest()
        self._bridge = f'x{digest[:8]}'
        count = 1 << (_PREFIX - _RANGE.prefixlen)
        subnets = list(_RANGE.subnets(new_prefix=_PREFIX))
        self._addresses = list(subnets[int(digest, 16) % count].hosts())

    def address(self, host):
        """Return the address of a host on this network.

        :param host: a Xen host; any other is this machine
        """
        number = _number(host) if host.is_xen else 0
        return str(self._addresses[number])

    def plug(self, machine, others=()):
        """Connect a Xen host that has just started, and make the network.

        :param machine: :class:`compute.XenCompute`
        :param others: further addresses of this machine for tunnels
        """
        self._make()
        _ip('link', 'set', machine.taps()[-1], 'master', self._bridge)
        number, own = _number(machine.host), self.address(hosts.PROCESS)
        routes = ''.join(f' && ip route add {address}/32 via {own} dev'
                         f' {INTERFACE}' for address in others)
        machine.dom0.check(
            f'ip link set {INTERFACE} down && '
            f'ip link set {INTERFACE} address {_MAC.format(number)} && '
            f'ip link set {INTERFACE} up && '
            f'ip address add {self.address(machine.host)}/{_PREFIX} '
            f'dev {INTERFACE}{routes}')

    def _make(self):
        if os.path.exists(f'/sys/class/net/{self._bridge}'):
            return
        _ip('link', 'add', self._bridge, 'type', 'bridge', 'mcast_snooping',
            '0')
        _ip('link', 'set', self._bridge, 'addrgenmode', 'none', 'up')
        _ip('address', 'add', f'{self.address(hosts.PROCESS)}/{_PREFIX}',
            'dev', self._bridge)

    def remove(self):
        """Remove the bridge; may be called twice."""
        if os.path.exists(f'/sys/class/net/{self._bridge}'):
            _ip('link', 'delete', self._bridge)


def _number(host):
    return hosts.XENS.index(host) + 1


def _ip(*arguments):
    return shell.output(['ip', *arguments])

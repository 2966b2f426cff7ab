# SPDX-License-Identifier: Apache-2.0
"""The network between two Xen hosts: their last cards, on one bridge.

::

    valed [address 1] eth4 of dom0 === tap, bridge, tap === eth4 [address 2]

It leads nowhere else, so all labs have the same addresses.
"""

import hashlib
import os

from clickos_lab.config import hosts
from clickos_lab import shell
from clickos_lab.xen import qemu

#: The last card of a Xen host.
INTERFACE = f'eth{qemu.Machine().uplinks}'
#: Of a range for documentation (RFC 5737): the process hosts have others.
_ADDRESS, _PREFIX = '192.0.2.{}', 24
#: Both hosts come from one snapshot, and with the same addresses.
_MAC = '02:00:00:00:00:{:02x}'


def address(host):
    """Return the address of a Xen host between the hosts."""
    return _ADDRESS.format(_number(host))


def _number(host):
    return hosts.XENS.index(host) + 1


class Cable:
    """One lab's network between its Xen hosts."""

    def __init__(self, state):
        lab = hashlib.sha256(str(state.root).encode()).hexdigest()[:8]
        self._bridge = f'x{lab}'

    def join(self, machines):
        """Join the Xen hosts; what is there is removed.

        :param machines: :class:`compute.XenCompute` of both
        """
        self.remove()
        _ip('link', 'add', self._bridge, 'type', 'bridge', 'mcast_snooping',
            '0')
        _ip('link', 'set', self._bridge, 'addrgenmode', 'none', 'up')
        for machine in machines:
            _ip('link', 'set', machine.taps()[-1], 'master', self._bridge)
            machine.dom0.check(
                f'ip link set {INTERFACE} down && '
                f'ip link set {INTERFACE} address '
                f'{_MAC.format(_number(machine.host))} && '
                f'ip link set {INTERFACE} up && '
                f'ip address add {address(machine.host)}/{_PREFIX} '
                f'dev {INTERFACE}')

    def remove(self):
        """Remove the bridge; may be called twice."""
        if os.path.exists(f'/sys/class/net/{self._bridge}'):
            _ip('link', 'delete', self._bridge)


def _ip(*arguments):
    return shell.output(['ip', *arguments])

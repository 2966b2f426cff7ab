# SPDX-License-Identifier: Apache-2.0
"""The network between the two process hosts of this machine.

::

    valed [address 0] u... === veth === eth0 [address 1] namespace, valed-2

The addresses come from the range for benchmarks (RFC 2544), of which
xen/cable.py has the other half. Two labs on one machine have different ones.
"""

import hashlib
import ipaddress
import os

from clickos_lab import shell

_RANGE = ipaddress.ip_network('198.18.0.0/16')
_PREFIX = 30
#: Room for a tenant's frame of 1,900 bytes in a VXLAN datagram.
_MTU = 2000


class Underlay:
    """One lab's network between hosts."""

    def __init__(self, state):
        digest = hashlib.sha256(str(state.root).encode()).hexdigest()
        #: of the second host
        self.namespace = f'clickos-{digest[:6]}'
        self._outer = f'u{digest[:12]}'
        count = 1 << (_PREFIX - _RANGE.prefixlen)
        subnets = list(_RANGE.subnets(new_prefix=_PREFIX))
        self._addresses = list(subnets[int(digest, 16) % count].hosts())

    def address(self, host):
        """Return the address of a process host."""
        return str(self._addresses[host.place])

    def interface(self, host):
        """Return the interface that carries the VLANs of a process host."""
        return 'eth0' if host.place else self._outer

    def exists(self):
        """Return whether the lab has a second process host."""
        return os.path.exists(f'/sys/class/net/{self._outer}')

    def make(self):
        """Make the namespace and the two ends; what is there is removed."""
        self.remove()
        first, second = (f'{address}/{_PREFIX}'
                         for address in self._addresses)
        _ip('netns', 'add', self.namespace)
        _ip('link', 'add', self._outer, 'mtu', _MTU, 'type', 'veth', 'peer',
            'name', 'eth0', 'mtu', _MTU, 'netns', self.namespace)
        _ip('address', 'add', first, 'dev', self._outer)
        _ip('link', 'set', self._outer, 'up')
        _ip('-n', self.namespace, 'address', 'add', second, 'dev', 'eth0')
        _ip('-n', self.namespace, 'link', 'set', 'lo', 'up')
        _ip('-n', self.namespace, 'link', 'set', 'eth0', 'up')

    def remove(self):
        """Remove everything; may be called twice."""
        if self.exists():
            _ip('link', 'delete', self._outer)
        if os.path.exists(f'/run/netns/{self.namespace}'):
            _ip('netns', 'delete', self.namespace)

    def enter(self):
        """Return the beginning of a command that runs on the second host."""
        return ['nsenter', f'--net=/run/netns/{self.namespace}']


def _ip(*arguments):
    return shell.output(['ip', *map(str, arguments)])

# SPDX-License-Identifier: Apache-2.0
"""A process host for :class:`xen_bench.XenBench`: guests are processes.

::

    host [eth0] === veth, an uplink of valed === [0] guest

The same programs and calls make the guest as in a cloud.
"""

import os

from clickos_lab import bare_host
from clickos_lab.vnf import testbed

_SWITCH = 'vale0'
#: More than any vif takes.
_LINK_MTU = 9000


class Host:
    """Store, switch and toolstack of the guests.

    :param undo: an ExitStack that removes everything
    :param links: the most vifs of a guest
    """

    def __init__(self, state, undo, links=2):
        self._host = bare_host.Host(
            state, 'duties', 1_000_000_000 + os.getpid() * 100, undo,
            guests=2)
        self.client = self._host.client
        self._engine = self.client.call('host')['engine_sha256']
        self.taps = [self._uplink(undo, number)
                     for number in range(1, links + 1)]

    def _uplink(self, undo, number):
        """Lead a network of the switch to a link; return its other end."""
        outer, inner = (f'{end}{os.getpid()}-{number}' for end in 'oi')
        testbed.ip('link', 'add', outer, 'type', 'veth', 'peer', 'name', inner)
        undo.callback(testbed.ip, 'link', 'delete', outer)
        self._host.guardian.link(outer)
        testbed.ip('link', 'set', outer, 'mtu', _LINK_MTU)
        testbed.ip('link', 'set', outer, 'addrgenmode', 'none')
        testbed.ip('link', 'set', outer, 'up')
        self.client.call('uplink-set', switch=_SWITCH, segment=number,
                         uplink={'ifname': outer})
        return inner

    def image(self, _config, _profile):
        """Return the sum of the engine, which has all elements."""
        return self._engine

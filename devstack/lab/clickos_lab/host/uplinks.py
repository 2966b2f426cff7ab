# SPDX-License-Identifier: Apache-2.0
"""Networks that reach from this machine's switch to that of the Xen host.

::

    valed [uplinkN] === tap ... QEMU's card === ethN of dom0 [uplinkN] valed

A cable carries one network, a segment of both switches, and no two cables
meet. A network gets its cable with the first machine attached here. When all
cables are in use, a network without machines gives its cable up. The last
card of a Xen host is for tunnels (xen/cable.py).
"""

import json

from clickos_lab.config import neutron
from clickos_lab import errors
from clickos_lab import shell
from clickos_lab.xen import compute

_NAME = 'uplink'


class Uplinks:
    """The cables of one lab; without a Xen host there are none."""

    def __init__(self, state):
        self._state = state
        self._xen = compute.XenCompute(state)

    def reach(self, segment):
        """Take a network to the Xen host, if one runs.

        :raises LabError: if every cable is used by another network
        """
        if not self._xen.running():
            return
        ports = self._ports()
        if segment not in {p['segment'] for p in ports if _is_uplink(p)}:
            self._connect(self._free(ports), segment)

    def release(self):
        """Give up the cables; the Xen host ends."""
        for port in filter(_is_uplink, self._ports()):
            self._vale_ctl('detach', f'{neutron.SWITCH}:{port["port"]}')

    def _free(self, ports):
        """Return the number of a cable that no network needs."""
        needed = {p['segment'] for p in ports
                  if not _is_uplink(p) and not p.get('uplink')}
        carried = {p['port']: p['segment'] for p in ports if _is_uplink(p)}
        numbers = range(len(self._xen.taps()) - 1)
        for number in sorted(numbers, key=lambda n: _name(n) in carried):
            if carried.get(_name(number)) not in needed:
                return number
        raise errors.LabError(
            f'the Xen host has {len(numbers)} uplinks, and each carries a '
            'network with a machine in it')

    def _connect(self, number, segment):
        port = f'{neutron.SWITCH}:{_name(number)}'
        outside = self._xen.taps()[number]
        inside = f'eth{number + 1}'
        for run, card in ((self._vale_ctl, outside), (self._inside, inside)):
            run('detach', port)
            run('attach', port, '--kind=veth', f'--ifname={card}',
                f'--segment={segment}')

    def _inside(self, *arguments):
        return self._xen.run('vale-ctl', *arguments)

    def _ports(self):
        return json.loads(self._vale_ctl('ports', '-o', 'json'))

    def _vale_ctl(self, *arguments):
        return shell.output([
            self._state.binary('vale-ctl'),
            f'--socket={self._state.run}/valed/valed.sock', *arguments])


def _name(number):
    return f'{_NAME}{number}'


def _is_uplink(port):
    return port['port'].startswith(_NAME)

# SPDX-License-Identifier: Apache-2.0
"""Chains of guests in the Xen lab: netback with two switches, and valed.

Belgrade 2017, Tables I and II, had up to 20 guests on Open vSwitch. All here
share one emulated processor: a rate tells what a frame costs all hops, the
switch and both ends together.
"""

import dataclasses

from clickos_lab.xen import toolstack
from tests.figures import net
from tests.xen import guest

_HOPS = (0, 1, 2, 5, 10, 20)
_LENGTHS = (60, 1514)
_WARM_S, _SECONDS = 3, 5
_SOURCE = 0xf0
_WIRE = """
FromDevice(0) -> StoreEtherAddress({}, dst) -> ToDevice(1);
FromDevice(1) -> Discard;
"""


@dataclasses.dataclass(frozen=True)
class _Way:
    """The links between guests, one between two of them.

    :ivar kind: of ``lab-net``; None: ports of valed
    """

    name: str
    kind: str | None

    def vifs(self, *links):
        """Return a guest's configuration; the links are up."""
        if not self.kind:
            return ''
        made = (f'"mac={{}},bridge={self.kind}{link}"' for link in links)
        return f'vif = [{",".join(made)}]'


_WAYS = (_Way('netback and Linux bridge', 'bridge'),
         _Way('netback and Open vSwitch', 'ovs'),
         _Way('vale ports and valed', None))


def measure(host, table):
    """Fill the table's part."""
    toolstack.start(host, 'valed')
    peers = {}
    for way in _WAYS:
        with _Chain(host, way) as chain:
            for hops in _HOPS:
                chain.grow(hops)
                for length in _LENGTHS:
                    rate = chain.rate(length)
                    peer = peers.setdefault((hops, length), rate)
                    table.add(f'{hops} guests, {length} bytes, {way.name}',
                              rate, 'frames/s', peer)


class _Chain:
    """Guests that hand frames on, from link 0 to the last link."""

    def __init__(self, host, way):
        self._host, self._dom0, self._way = host, host.dom0, way
        self._hops = []

    def __enter__(self):
        self._link(0)
        return self

    def __exit__(self, *_):
        for made in self._hops:
            self._end(made, 2)

    def grow(self, hops):
        """Add guests until their number is ``hops``."""
        while len(self._hops) < hops:
            number = len(self._hops)
            self._link(number + 1)
            vifs = self._way.vifs(number, number + 1).format(
                _mac(number, 0), _mac(number, 1))
            made = guest.Guest(self._dom0, f'hop{number}', 'pvh',
                               vifs).create()
            self._attach(made, number, _mac(number, 0), 0)
            self._attach(made, number + 1, _mac(number, 1), 1)
            state, error = made.install(_WIRE.format(_mac(number + 1, 0)))
            if state != 'Running':
                raise AssertionError(f'{made.name}: {state}: {error}')
            self._hops.append(made)

    def rate(self, length):
        """Return the frames a second that arrive behind the last guest."""
        hops = len(self._hops)
        sink = self._end_point('rx', _number(hops, 0), hops, '')
        source = self._end_point(
            'tx', _SOURCE, 0, f'pkt-gen.function=tx pkt-gen.length={length} '
            f'pkt-gen.dst={_mac(0, 0)}')
        # By the clock of the host, which may count instructions.
        self._dom0.check(f'sleep {_WARM_S + _SECONDS}', timeout_s=300)
        rate = net.average(sink, 'rx')
        self._end(source, 1)
        self._end(sink, 1)
        return rate

    def _end_point(self, name, number, link, words):
        vif = self._way.vifs(link) or ''
        made = net.generator(self._host, name, number, words, vif)
        self._attach(made, link, net.MAC.format(number), 0)
        return made

    def _link(self, number):
        if self._way.kind:
            name = f'{self._way.kind}{number}'
            self._dom0.check(f'lab-net {self._way.kind} {name}',
                             timeout_s=60)

    def _attach(self, made, link, mac, devid):
        """Make a port of valed; a link is a segment."""
        if not self._way.kind:
            self._vale(f'attach vale0:{made.name}-{devid} --segment '
                       f'{link + 1} --kind xen --domid {made.domid} '
                       f'--devid {devid} --mac {mac}')

    def _end(self, made, ports):
        made.destroy()
        for devid in range(0 if self._way.kind else ports):
            self._vale(f'detach vale0:{made.name}-{devid}')

    def _vale(self, arguments):
        self._dom0.check(toolstack.command('vale-ctl', *arguments.split()))


def _number(hop, devid):
    """Return the address of a port, by number.

    The sink has that of the next guest, so no guest's target changes.
    """
    return 0x10 + 2 * hop + devid


def _mac(hop, devid):
    return net.MAC.format(_number(hop, devid))

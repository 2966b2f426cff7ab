# SPDX-License-Identifier: Apache-2.0
"""Rings of version 1 and 2: a guest's instructions for a frame, and memory.

A guest forwards from one port of the switch to another.
"""

import itertools
import json

from clickos_lab import bounds
from clickos_lab.xen import qemu
from clickos_lab.xen import toolstack
from tests.figures import net
from tests.xen import guest

_FRAMES = 5000
_LENGTHS = (60, 512, 1514)
#: Slots of the generator, whose frames reach the guest in such bursts.
_BURSTS = (64, 256)
_INSTRUCTIONS = 'instructions'
_WIRE = """
FromDevice(0) -> Queue(512) -> ToDevice(1);
FromDevice(1) -> Discard;
"""
#: Words of the guest's command line by version.
_VERSIONS = {1: 'vale.in_place=off', 2: 'vale.in_place=on'}


def measure(host, table):
    """Fill the table's part."""
    toolstack.start(host, 'valed')
    first, second = (_Wire(host, v).figures() for v in _VERSIONS)
    for (what, unit), value in first.items():
        table.add(f'{what}, version 1', value, unit, value)
        table.add(f'{what}, version 2', second[what, unit], unit, value)
        if unit == _INSTRUCTIONS:
            bounds.hold('max_xen_ring_cost_ratio',
                        second[what, unit] / value)


class _Wire:
    """A guest whose ports 0 and 1 have rings of one version."""

    def __init__(self, host, version):
        self._host = host
        self._dom0 = host.dom0
        self._version = version
        self._guest = guest.Guest(
            host.dom0, 'wire', 'pvh',
            f'extra = "{_VERSIONS[version]}"').create()

    def figures(self):
        """Return the figures by name and unit; the guest ends."""
        before_kib = self._free_kib()
        self._connect(0, 5)
        self._connect(1, 6)
        figures = {
            ('memory of a port', 'KiB'): (before_kib - self._free_kib()) / 2}
        self._guest.install(_WIRE)
        for burst, length in itertools.product(_BURSTS, _LENGTHS):
            figures[f'{length} bytes, bursts of {burst}', _INSTRUCTIONS] = \
                self._forward(length, burst)
        self._guest.destroy()
        for devid in (0, 1):
            self._vale('detach', f'vale0:wire{devid}')
        return figures

    def _connect(self, devid, segment):
        """Add a port and wait until it is up."""
        self._attach(f'wire{devid}', self._guest, devid, segment, devid)
        domid = self._guest.domid
        self._dom0.check(
            f'lab-wait 60 /local/domain/0/backend/vale/{domid}/{devid}/state '
            '4', timeout_s=120)
        version = self._dom0.check('xenstore-read /local/domain/'
                                   f'{domid}/device/vale/{devid}/ring-version')
        if int(version) != self._version:
            raise AssertionError(f'port {devid}: rings of version {version}')

    def _forward(self, length, burst):
        """Return the instructions for a frame from port 0 to port 1."""
        words = f'pkt-gen.function=tx pkt-gen.length={length} ' \
            f'pkt-gen.count={_FRAMES} pkt-gen.dst={net.MAC.format(0)}'
        source = net.generator(self._host, 'tx', 2, words, '')
        sent, before = self._sent('wire1'), self._instructions()
        self._attach('tx', source, 0, 5, 2, burst)
        self._await_frames()
        forwarded = self._sent('wire1') - sent
        if forwarded < _FRAMES / 2:
            raise AssertionError(f'{length} bytes: {forwarded} frames of '
                                 f'{_FRAMES} were forwarded')
        used = self._instructions() - before
        source.destroy()
        self._vale('detach', 'vale0:tx')
        return used / forwarded

    def _await_frames(self):
        """Wait until the generator has sent all, and the guest too."""
        for _ in range(600):
            if self._sent('tx') == _FRAMES:
                self._dom0.check('sleep 0.2')
                return
            self._dom0.check('sleep 0.1')
        raise AssertionError(f'{self._sent("tx")} frames of {_FRAMES}')

    def _attach(self, port, to, devid, segment, mac, slots=256):
        self._vale('attach', f'vale0:{port}', '--segment', segment, '--kind',
                   'xen', '--domid', to.domid, '--devid', devid, '--mac',
                   net.MAC.format(mac), '--slots', slots)

    def _sent(self, port):
        """Return how many frames the switch has taken from a port."""
        out = self._vale('-o', 'json', 'stats')
        found, = (p for p in json.loads(out) if p['port'] == port)
        return found['counters']['rx_packets']

    def _vale(self, *arguments):
        return self._dom0.check(toolstack.command('vale-ctl', *arguments))

    def _instructions(self):
        """Return those that the guest has executed so far."""
        out = self._dom0.check(f'/root/timing cpu {self._guest.domid}')
        return float(out) / qemu.INSTRUCTION_NS

    def _free_kib(self):
        """Return its free memory, with a router that does nothing."""
        self._guest.install('Idle -> Discard;')
        return int(self._guest.get('memory'))

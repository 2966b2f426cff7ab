# SPDX-License-Identifier: Apache-2.0
"""Instructions for a packet that a Xen guest's firewall drops.

Another guest sends them; the firewall, or the switch for it, drops all.
"""

import json

from clickos_lab.xen import image
from clickos_lab.xen import qemu
from clickos_lab.xen import toolstack
from tests.figures import net

#: Of an IPv4 packet of 52 bytes, and of the longest.
_LENGTHS = (66, 1514)
#: The difference of two runs has no fixed costs.
_FEW, _MANY = 4000, 12000
_FIREWALL = 'FromDevice(0) -> MarkIPHeader(14) -> fw :: IPFilter(' \
    'deny udp dst port 1234, allow all) -> Discard;'
_DOM0 = 0


def measure(host, table):
    """Fill the table's part."""
    toolstack.start(host, 'valed')
    toolstack.start(host, 'cosmosd')
    firewall = _Firewall(host)
    for length in _LENGTHS:
        plain, offloaded = (firewall.cost(length, offload)
                            for offload in (False, True))
        for who in plain:
            for how, cost in (('without', plain), ('with', offloaded)):
                table.add(f'{length} bytes, {who}, {how}', cost[who],
                          'instructions', plain[who])


class _Firewall:
    """The guest that drops."""

    def __init__(self, host):
        self._host, self._dom0 = host, host.dom0
        self._dom0.put_text(_FIREWALL, '/root/fw.click')
        self._cosmos('create', '--name', 'fw', '--config', '/root/fw.click',
                     '--memory', 8, '--timeout', 60, '--image',
                     f'{image.FOLDER}/{image.CLICKOS}', '--vif',
                     f'port=fw,segment=5,mac={net.MAC.format(1)}')
        self._domid = json.loads(self._cosmos('-o', 'json', 'info',
                                              'fw'))['domid']

    def cost(self, length, offload):
        """Return the instructions for a packet: guest, dom0, both."""
        self._cosmos('write', 'fw', 'fw.offload', str(offload).lower())
        self._dom0.check('sleep 3')
        few, many = (self._send(length, count) for count in (_FEW, _MANY))
        guest, dom0 = ((b - a) / (_MANY - _FEW) for a, b in zip(few, many))
        return {'guest': guest, 'dom0': dom0, 'both': guest + dom0}

    def _send(self, length, count):
        """Send as fast as possible; return the instructions of both."""
        words = f'pkt-gen.function=tx pkt-gen.length={length} ' \
            f'pkt-gen.count={count} pkt-gen.dst={net.MAC.format(1)}'
        source = net.generator(self._host, 'tx', 2, words, '')
        before = self._used()
        self._vale('attach', 'vale0:tx', '--segment', 5, '--kind', 'xen',
                   '--domid', source.domid, '--devid', 0, '--mac',
                   net.MAC.format(2), '--slots', 64)
        # Both runs wait as long; this clock skips time without work.
        self._dom0.check('sleep 5')
        used = self._used()
        self._check_sent(count)
        source.destroy()
        self._vale('detach', 'vale0:tx')
        return [b - a for a, b in zip(before, used)]

    def _check_sent(self, count):
        out = json.loads(self._vale('-o', 'json', 'stats'))
        sent, = (p['counters']['rx_packets'] for p in out
                 if p['port'] == 'tx')
        if sent != count:
            raise AssertionError(f'{sent} packets of {count} were sent')

    def _used(self):
        """Return the instructions of guest and dom0 so far."""
        return [float(self._dom0.check(f'/root/timing cpu {domid}'))
                / qemu.INSTRUCTION_NS for domid in (self._domid, _DOM0)]

    def _cosmos(self, *arguments):
        return self._dom0.check(toolstack.command('cosmos', *arguments),
                                timeout_s=120)

    def _vale(self, *arguments):
        return self._dom0.check(toolstack.command('vale-ctl', *arguments))

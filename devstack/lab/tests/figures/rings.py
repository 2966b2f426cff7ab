# SPDX-License-Identifier: Apache-2.0
"""Rings of version 1 and 2: a guest's time for a frame, and for its rings.

A guest forwards from one port of the switch to another. The versions take
turns. The host's clock counts instructions, two nanoseconds each.
"""

import json
import statistics

from clickos_lab.xen import toolstack
from tests.figures import net
from tests.xen import guest

_ROUNDS = 1
_FRAMES = 5000
_LENGTHS = (60, 512, 1514)
_SLOTS = 256
_WIRE = """
FromDevice(0) -> Queue(512) -> ToDevice(1);
FromDevice(1) -> Discard;
"""
_VERSIONS = {1: 'extra = "vale.in_place=off"', 2: ''}


def measure(host, table):
    """Fill the table's part."""
    toolstack.start(host, 'valed')
    taken = {}
    for _ in range(_ROUNDS):
        for version in _VERSIONS:
            for what, value in _of_a_guest(host, version).items():
                taken.setdefault(what, {}).setdefault(version, []).append(
                    value)
    for (what, unit), values in taken.items():
        first, second = (statistics.median(values[v]) for v in _VERSIONS)
        table.add(f'{what}, version 1', first, unit, first)
        table.add(f'{what}, version 2', second, unit, first)


def _of_a_guest(host, version):
    """Return the figures of one guest by name and unit."""
    wire = guest.Guest(host.dom0, 'wire', 'pvh', _VERSIONS[version]).create()
    before = _free_kib(wire)
    figures = {('a port until it is up', 'us'): _connect(host, wire, 0, 5)}
    cpu_us = _cpu_us(host, wire)
    _connect(host, wire, 1, 6)
    figures['its guest\'s time', 'us'] = _cpu_us(host, wire) - cpu_us
    figures['memory of a port', 'KiB'] = (before - _free_kib(wire)) / 2
    wire.install(_WIRE)
    for length in _LENGTHS:
        figures[f'a frame of {length} bytes, guest\'s time', 'ns'] = \
            _forwarded_ns(host, wire, length)
    wire.destroy()
    for devid in (0, 1):
        net._vale(host, f'detach vale0:wire{devid}')
    return figures


def _connect(host, wire, devid, segment):
    """Add a port; return the microseconds until it is up."""
    state = f'/local/domain/0/backend/vale/{wire.domid}/{devid}/state'
    vale = toolstack.command(
        'vale-ctl', 'attach', f'vale0:wire{devid}', '--segment', segment,
        '--kind', 'xen', '--domid', wire.domid, '--devid', devid,
        '--mac', net._MAC.format(devid), '--slots', _SLOTS)
    out = host.dom0.check(f"""
began=$EPOCHREALTIME
{vale} >/dev/null
lab-wait 30 {state} 4 >/dev/null
echo $began $EPOCHREALTIME""", timeout_s=60)
    began, ended = map(float, out.split())
    return (ended - began) * 1e6


def _forwarded_ns(host, wire, length):
    """Return the guest's time for a frame from its port 0 to its port 1."""
    words = f'pkt-gen.function=tx pkt-gen.length={length} ' \
        f'pkt-gen.count={_FRAMES} pkt-gen.dst={net._MAC.format(0)}'
    source = net._generator(host, 'tx', 2, words, '')
    sent, cpu_us = _sent(host, 'wire1'), _cpu_us(host, wire)
    net._vale(host, f'attach vale0:tx --segment 5 --kind xen '
              f'--domid {source.domid} --devid 0 --mac {net._MAC.format(2)}')
    for _ in range(600):
        if _sent(host, 'tx') == _FRAMES:
            break
        host.dom0.check('sleep 0.1')
    else:
        raise AssertionError(f'{length} bytes: {_sent(host, "tx")} frames')
    host.dom0.check('sleep 0.2')
    used_us, frames = _cpu_us(host, wire) - cpu_us, _sent(host, 'wire1') - sent
    source.destroy()
    net._vale(host, 'detach vale0:tx')
    return used_us * 1e3 / frames


def _sent(host, port):
    """Return how many frames the switch has taken from a port."""
    out = host.dom0.check(toolstack.command('vale-ctl', '-o', 'json', 'stats'))
    found, = (p for p in json.loads(out) if p['port'] == port)
    return found['counters']['rx_packets']


def _cpu_us(host, of):
    return float(host.dom0.check(f'/root/timing cpu {of.domid}'))


def _free_kib(of):
    """Return the free memory of a guest with a router that does nothing."""
    of.install('Idle -> Discard;')
    return int(of.get('memory'))

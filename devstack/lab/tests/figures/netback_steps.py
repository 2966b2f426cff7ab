# SPDX-License-Identifier: Apache-2.0
"""Costs of netback by step, as Table 2 of the ClickOS paper (NSDI 2014).

The patched netback's trace events lie between the steps. The clock of the
events counts as the host's does, so a step has a number of instructions.
"""

import collections
import re
import statistics

from clickos_lab.xen import qemu

_LENGTHS = (60, 1514)
_BATCH, _BATCHES, _PAUSE_US = 32, 200, 4000
#: The stock device of the guests, through which they also take scripts.
DEVICE = 'eth1'
_TRACING = '/sys/kernel/tracing'
#: The processor's counter has the same unit as the clock, but no rounding.
_START = f"""
set -e
[ -e {_TRACING}/trace ] || mount -t tracefs tracefs {_TRACING}
cd {_TRACING}
echo x86-tsc >trace_clock
echo 8192 >buffer_size_kb
echo 1 >events/xen_netback/enable
echo >trace
"""
_STOP = f"""
cd {_TRACING}
echo 0 >events/xen_netback/enable
grep ': xenvif_' trace
"""
_EVENT = re.compile(r' (\d+): xenvif_(\w+): (\S+)-q\d+ count=(\d+)')
#: Steps by their last event, and which event comes before.
_STEPS = {
    'tx_read': ('tx_begin', 'from the guest: requests read, sk_buffs made'),
    'tx_copied': ('tx_read', 'from the guest: grant copy by the hypervisor'),
    'tx_mapped': ('tx_copied', 'from the guest: pages mapped'),
    'tx_passed_on': ('tx_mapped', 'from the guest: to vif, bridge and the '
                     "other vif's queue"),
    'rx_prepared': ('rx_begin', 'to the guest: requests read'),
    'rx_copied': ('rx_prepared', 'to the guest: grant copy by the hypervisor'),
    'rx_answered': ('rx_copied', 'to the guest: responses and notification')}


def measure(host, pair, table):
    """Fill the table's part."""
    for length in _LENGTHS:
        host.dom0.check(_START)
        pair.send(length, _BATCH * _BATCHES, _BATCH, _PAUSE_US, DEVICE)
        out = host.dom0.check(_STOP, timeout_s=120)
        for name, batches, cost in steps(out, _BATCH):
            table.add(f'{length} bytes, {name} ({batches} batches of '
                      f'{_BATCH})', cost, 'instructions')


def steps(trace, batch):
    """Give the steps of batches of a size: name, how many, the median cost.

    :param trace: lines of the events, by the counter of the processor
    """
    found = collections.defaultdict(list)
    for events in _batches(trace):
        if events.get('size') == batch:
            for last, (first, _) in _STEPS.items():
                if first in events and last in events:
                    found[last].append(events[last] - events[first])
    for last, (_, name) in _STEPS.items():
        if found[last]:
            yield name, len(found[last]), \
                statistics.median(found[last]) / qemu.INSTRUCTION_NS


def _batches(trace):
    """Give the events of each batch, by name; ``size`` is its packets."""
    open_ones = {}
    for time, event, vif, count in _EVENT.findall(trace):
        way = vif, event[:2]
        if event.endswith('_begin'):
            open_ones[way] = {}
        events = open_ones.get(way, {})
        events.setdefault(event, int(time))
        if event in ('tx_passed_on', 'rx_answered') and events:
            yield {**open_ones.pop(way, {}), 'size': int(count)}

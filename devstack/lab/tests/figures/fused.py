# SPDX-License-Identifier: Apache-2.0
"""Rates of fused chains, of process guests at a switch, without OpenStack.

Run as root from devstack/lab: ``python -m tests.figures.fused``. pkt-gen
sends 60-byte frames of one flow as fast as it can. The last hop's counter
tells the rate.
"""

import functools
import statistics

from clickos_client import combiner
from clickos_lab import bounds
from clickos_lab.papers import testbed as _testbed
from clickos_lab import paths
from clickos_lab.vnf import programs

from tests.figures import table

_WIRES = 9
_ROUNDS = 9
WIRE = '''
FromDevice(0) -> out :: Counter -> Queue(1024) -> ToDevice(1);
FromDevice(1) -> Queue(1024) -> ToDevice(0);
'''
FIREWALL = WIRE.replace('-> out', '-> MarkIPHeader(14) -> IPFilter({}, '
                        'allow all) -> out', 1).format(', '.join(
                            f'deny src host 10.7.0.{n}' for n in range(10)))
NAT = '''
FromDevice(0) -> Strip(14) -> CheckIPHeader
    -> [0] flows :: IPRewriter(pattern 10.9.0.1 1024-65535 - - 0 1, drop)
    -> EtherEncap(0x0800, 2:0:0:0:9:1, 2:0:0:0:9:2) -> out :: Counter
    -> Queue(1024) -> ToDevice(1);
FromDevice(1) -> Strip(14) -> CheckIPHeader -> [1] flows;
flows[1] -> EtherEncap(0x0800, 2:0:0:0:9:2, 2:0:0:0:9:1) -> Queue(1024)
    -> ToDevice(0);
'''
MONITOR = WIRE.replace('-> out', '-> MarkIPHeader(14) -> AggregateIPFlows'
                       ' -> AggregateCounter -> out', 1)


def fused(hops):
    """Return the configuration of a fused chain of (name, configuration)."""
    return combiner.fuse(programs.path('click-combine'), [
        combiner.Hop(name, text, 0, 1) for name, text in hops])


def rate(state, config, counter):
    """Return the packets per second that a counter of a guest sees."""
    with _testbed.Testbed(state) as testbed:
        vif = testbed.vif(1)
        guest = testbed.boot(config, vif, testbed.vif(2))
        testbed.pkt_gen('tx', testbed.vif(1), '-D', vif['mac'])
        return statistics.median(*testbed.rates(
            guest, read=functools.partial(testbed.counted, counter=counter)))


def main():
    """Measure and print."""
    wires = [(f'w{n}', WIRE) for n in range(_WIRES)]
    hops = {'fw': FIREWALL, 'nat': NAT, 'mon': MONITOR}
    configs = {
        'one wire': (WIRE, 'out'),
        'nine fused wires': (fused(wires), f'{wires[-1][0]}/out'),
        **{f'{name} alone': (text, 'out') for name, text in hops.items()},
        'the three fused': (fused(hops.items()), 'mon/out')}
    rates = {name: [] for name in configs}
    for _ in range(_ROUNDS):    # in turn: a busy moment hits all of them
        for name, (text, counter) in configs.items():
            rates[name].append(rate(paths.State(), text, counter))
    middle = {name: statistics.median(of) for name, of in rates.items()}
    one, found = middle['one wire'], table.Table()
    # Each has the crossing of a wire in its time; the fused one once.
    sum_s = sum(1 / middle[f'{name} alone'] for name in hops)
    predicted = 1 / (sum_s - (len(hops) - 1) / one)
    for name, each in middle.items():
        found.add(name, each, 'packets/s',
                  predicted if name == 'the three fused' else one)
    found.add('predicted for the three', predicted, 'packets/s', one)
    bounds.hold('min_fused_wires_rate_percent',
                100 * middle['nine fused wires'] / one)
    bounds.hold('min_fused_hops_rate_percent',
                100 * middle['the three fused'] / predicted)


if __name__ == '__main__':
    main()

# SPDX-License-Identifier: Apache-2.0
"""Rates of fused chains, of process guests at a switch, without OpenStack.

Run as root from devstack/lab: ``python -m tests.figures.fused``. pkt-gen
sends 60-byte frames of one flow as fast as it can. The last hop's counter
tells the rate.
"""

import functools
import statistics

from clickos_client import combiner
from clickos_lab.papers import rig as _rig
from clickos_lab import paths
from clickos_lab.vnf import programs

from tests.figures import table

_WIRES = 9
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
    with _rig.Rig(state) as rig:
        vif = rig.vif(1)
        guest = rig.boot(config, vif, rig.vif(2))
        rig.pkt_gen('tx', rig.vif(1), '-D', vif['mac'])
        return statistics.median(*rig.rates(
            guest, read=functools.partial(rig.counted, counter=counter)))


def main():
    """Measure and print."""
    found, of = table.Table(), functools.partial(rate, paths.State())
    one = of(WIRE, 'out')
    found.add('one wire', one, 'packets/s', one)
    names = [f'w{n}' for n in range(_WIRES)]
    nine = of(fused([(name, WIRE) for name in names]), f'{names[-1]}/out')
    found.add('nine fused wires', nine, 'packets/s', one)
    hops = [('fw', FIREWALL), ('nat', NAT), ('mon', MONITOR)]
    alone = [of(text, 'out') for _, text in hops]
    for (name, _), each in zip(hops, alone):
        found.add(f'{name} alone', each, 'packets/s', one)
    # Each has the crossing of a wire in its time; the fused one once.
    sum_s = sum(1 / each for each in alone) - (len(hops) - 1) / one
    found.add('predicted for the three', 1 / sum_s, 'packets/s', one)
    found.add('the three fused', of(fused(hops), 'mon/out'), 'packets/s',
              1 / sum_s)


if __name__ == '__main__':
    main()

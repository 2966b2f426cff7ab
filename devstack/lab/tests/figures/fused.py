# SPDX-License-Identifier: Apache-2.0
"""Rates of fused chains, of process guests at a switch, without OpenStack.

Run as root from devstack/lab: ``python -m tests.figures.fused``. pkt-gen
sends 60-byte frames of one flow as fast as it can. The last hop's counter
tells the rate.
"""

import contextlib
import os
import subprocess
import time

from clickos_lab import paths
from clickos_lab.vnf import programs

from tests.as_root import host
from tests.figures import table

_WINDOW_S, _TIMES, _WIRES = 1, 5, 9
_MAC = '02:00:00:00:09:{:02x}'
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
    with contextlib.ExitStack() as stack:
        words = []
        for name, text in hops:
            read, write = os.pipe()
            stack.callback(os.close, read)
            os.write(write, text.encode())
            os.close(write)
            words.append((name, f'{name}=/dev/fd/{read}', read))
        links = [link for (one, *_), (two, *_) in zip(words, words[1:])
                 for link in (f'{one}.1={two}.0', f'{two}.0={one}.1')]
        return subprocess.run(
            [programs.path('click-combine'), '--fuse',
             *(word for _, word, _ in words), *links], check=True, text=True,
            pass_fds=[fd for *_, fd in words],
            stdout=subprocess.PIPE).stdout


class Rates:
    """A switch with one guest at a time."""

    def __init__(self, state, stack):
        self._state = state
        self.host = host.Host(state, 'a', 2_000_000, stack)
        self._made = 0

    def rate(self, config, counter):
        """Return the packets per second that a counter of a guest sees."""
        self._made += 1
        n, client = self._made, self.host.client
        uuid = f'3f0a6d4e-6f0e-4a4e-9c1c-0d4b0f3f2b{n:02}'
        vifs = [{'devid': side, 'mac': _MAC.format(2 * n + side),
                 'switch': 'vale0', 'port': f'w{n}-{side}',
                 'segment': 2 * n + side, 'allowed': [], 'mtu': 1500,
                 'port_security': False, 'slots': 1024} for side in (0, 1)]
        client.create(uuid, f'w{n}', client.host()['engine_sha256'], 32,
                      vifs, config, 'w.click')
        process = subprocess.Popen(
            [self._state.binary('pkt-gen'), '-f', 'tx', '-i', f'vale0:g{n}',
             f'--segment={2 * n}', '-D', _MAC.format(2 * n),
             f'--socket={self.host.folder}/valed.sock'],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            time.sleep(_WINDOW_S)
            return table.middle(lambda: self._window(uuid, counter), _TIMES)
        finally:
            process.kill()
            process.wait()
            client.destroy(uuid)

    def _window(self, uuid, counter):
        def count():
            return int(self.host.client.handler_read(
                uuid, f'{counter}.count')['value']), time.monotonic()
        before, start_s = count()
        time.sleep(_WINDOW_S)
        after, end_s = count()
        return (after - before) / (end_s - start_s)


def main():
    """Measure and print."""
    found = table.Table()
    with contextlib.ExitStack() as stack:
        rates = Rates(paths.State(), stack)
        one = rates.rate(WIRE, 'out')
        found.add('one wire', one, 'packets/s', one)
        names = [f'w{n}' for n in range(_WIRES)]
        nine = rates.rate(fused([(name, WIRE) for name in names]),
                          f'{names[-1]}/out')
        found.add('nine fused wires', nine, 'packets/s', one)
        hops = [('fw', FIREWALL), ('nat', NAT), ('mon', MONITOR)]
        alone = [rates.rate(text, 'out') for _, text in hops]
        for (name, _), rate in zip(hops, alone):
            found.add(f'{name} alone', rate, 'packets/s', one)
        # Each has the crossing of a wire in its time; the fused one once.
        sum_s = sum(1 / rate for rate in alone) - (len(hops) - 1) / one
        found.add('predicted for the three', 1 / sum_s, 'packets/s', one)
        found.add('the three fused', rates.rate(fused(hops), 'mon/out'),
                  'packets/s', 1 / sum_s)


if __name__ == '__main__':
    main()

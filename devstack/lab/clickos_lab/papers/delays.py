# SPDX-License-Identifier: Apache-2.0
"""Times: of a round trip, of a boot, of a handler."""

import time

from clickos_lab.papers import figure
from clickos_lab.papers import testbed as _testbed

_NEIGHBORS = (0, 1, 3, 5, 7, 9, 11)
_ECHO = 'FromDevice(0) -> EtherMirror -> ToDevice(0);'
#: What the guests next to the measured one do.
_LOADS = {
    'idle': 'Idle -> Discard;',
    'busy with the processor':
        'InfiniteSource(LENGTH 64, LIMIT -1) -> Discard;',
    'busy with memory':
        'InfiniteSource(LENGTH 1500, LIMIT -1) -> Queue(2000) '
        '-> Unqueue(BURST 2000) -> Discard;'}
_FIREWALL = ('FromDevice(0) -> IPFilter(allow udp, deny all) '
             '-> ToDevice(0);')
_PINGS = 200
_BOOTS = 200
_STEP = 20
_TIMES = 20
_SIZES = (8, 64, 256, 1024, 4096, 16384)
_KEEPS = 's :: InfiniteSource(ACTIVE false) -> Discard;'


def round_trips(state):
    """Round trips to a guest, next to others that are idle or busy."""
    made = figure.Figure(
        'fig06-round-trips', 'a guest answers beside others',
        'NSDI 2014, Figure 6', 'guests beside it', 'round trip, µs')
    for load, config in _LOADS.items():
        for count in _NEIGHBORS:
            with _testbed.Testbed(state) as testbed:
                made.add(load, count, _round_trips(testbed, config, count))
    return made


def _round_trips(testbed, config, count):
    echo = testbed.vif(1)
    testbed.boot(_ECHO, echo)
    for neighbor in range(count):
        testbed.boot(config, testbed.vif(2 + neighbor))
    vif = testbed.vif(1)
    return [_testbed.report(testbed.pkt_gen(
        'ping', vif, '-D', echo['mac'], '-n', _PINGS,
        '-r', _PINGS))['rtt_us']['p50'] for _ in range(figure.REPEATS)]


def boots(state):
    """Guests that are made one after another, as the papers' boot."""
    made = figure.Figure(
        'fig05-boots', 'making a guest beside those that run',
        'NSDI 2014, Figure 5', 'guests that run', 'ms')
    with _testbed.Testbed(state, guests=_BOOTS + 1) as testbed:
        for first in range(0, _BOOTS, _STEP):
            made.add('until it forwards', first,
                     [_ms(lambda: testbed.boot(_FIREWALL, testbed.vif(1)))
                      for _ in range(_STEP)])
    return made


def handlers(state):
    """Reads and writes of a handler, by the size of its value."""
    made = figure.Figure(
        'fig09-handlers', 'a handler of a guest, through the Xen store',
        'NSDI 2014, Figure 9', 'bytes of the value', 'ms')
    with _testbed.Testbed(state) as testbed:
        guest = testbed.boot(_KEEPS, testbed.vif(1))
        for size in _SIZES:
            made.add('write', size, [
                _ms(lambda: testbed.client.call(
                    'handler-write', uuid=guest,
                    writes=[['s.data', 'x' * size]]))
                for _ in range(_TIMES)])
            made.add('read', size, [
                _ms(lambda: testbed.client.call('handler-read', uuid=guest,
                                                name='s.data'))
                for _ in range(_TIMES)])
    return made


def _ms(call):
    """Return how long a call takes."""
    began_s = time.monotonic()
    call()
    return (time.monotonic() - began_s) * 1000

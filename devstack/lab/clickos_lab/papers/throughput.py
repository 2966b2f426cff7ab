# SPDX-License-Identifier: Apache-2.0
"""Rates of guests and of the switch, in packets a second."""

from clickos_lab.papers import figure
from clickos_lab.papers import testbed as _testbed

SIZES = (64, 128, 256, 512, 1024, 1500)
RINGS = (64, 256, 1024, 2048)
SIZE = 'frame on the wire, bytes'
RATE = 'packets a second'
_WIRE = 'FromDevice(0) -> ToDevice(1);'
_TARGET = _testbed.mac(0xffff)
_HOPS = (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 14, 19)
_CHAIN_SIZES = (64, 512, 1500)
_CROWD = (1, 2, 5, 10, 25, 50, 100)
_PAIRS = (1, 2, 3, 4, 5, 6)


def switch(state):
    """The switch alone: from pkt-gen to pkt-gen."""
    made = figure.Figure(
        'fig04-switch', 'the switch alone', 'NSDI 2014, Figure 4',
        SIZE, RATE)
    with _testbed.Testbed(state) as testbed:
        for size in SIZES:
            for pairs in (1, 2):
                made.add(f'{pairs} sender{"s" * (pairs > 1)}', size,
                         _through_switch(testbed, size, pairs))
    return made


def _through_switch(testbed, size, pairs):
    sinks = [testbed.vif(1 + pair) for pair in range(pairs)]
    return testbed.received(
        sinks, lambda: [_sender(testbed, vif, size) for vif in sinks])


def _sender(testbed, vif, size):
    return testbed.pkt_gen('tx', testbed.vif(vif['segment']),
                           '-l', size - _testbed.FCS, '-D', vif['mac'])


def rings(state):
    """A guest that only sends, and one that only receives."""
    sent = figure.Figure(
        'fig07-transmit', 'a guest sends, by slots of its ring',
        'NSDI 2014, Figure 7', SIZE, RATE)
    heard = figure.Figure(
        'fig07-receive', 'a guest receives, by slots of its ring',
        'NSDI 2014, Figure 7', SIZE, RATE)
    for slots in RINGS:
        for size in SIZES:
            with _testbed.Testbed(state) as testbed:
                sink = testbed.vif(1, slots)
                testbed.source(_testbed.frame(size, _TARGET, sink['mac']),
                               testbed.vif(1, slots))
                sent.add(f'{slots} slots', size,
                         testbed.received([sink], list))
            with _testbed.Testbed(state) as testbed:
                vif = testbed.vif(1, slots)
                guest = testbed.sink(vif)
                _sender(testbed, vif, size)
                heard.add(f'{slots} slots', size, testbed.rates(guest)[0])
    return sent, heard


def chains(state):
    """A source, guests that forward, and a sink that counts."""
    made = figure.Figure(
        'fig10-chains', 'guests between a source and a sink',
        'NSDI 2014, Figure 10, and Belgrade 2017, Table II',
        'guests that forward', RATE)
    for size in _CHAIN_SIZES:
        for hops in _HOPS:
            with _testbed.Testbed(state, guests=32) as testbed:
                made.add(f'{size} bytes', hops, _through(testbed, hops, size))
    return made


def _through(testbed, hops, size):
    sink = testbed.sink(vif := testbed.vif(1 + hops))
    for hop in reversed(range(hops)):
        testbed.boot(_WIRE, testbed.vif(1 + hop), testbed.vif(2 + hop))
    testbed.source(_testbed.frame(size, _TARGET, vif['mac']), testbed.vif(1))
    return testbed.rates(sink)[0]


def crowd(state):
    """Many guests send to one receiver, with their shares."""
    total = figure.Figure(
        'fig11-guests', 'guests send at once: sum of their rates',
        'NSDI 2014, Figure 11', 'guests', RATE)
    shares = figure.Figure(
        'fig11-shares', 'guests send at once: the share of each, '
        'from the least to the greatest', 'NSDI 2014, Figure 11', 'guests',
        'share of an equal part')
    for size in (64, 1500):
        for count in _CROWD:
            with _testbed.Testbed(state, guests=128) as testbed:
                sink, guests = _together(testbed, count, size)
                total.add(f'{size} bytes', count, testbed.rates(sink)[0])
                rates = testbed.rates(*guests, read=testbed.taken)
            means = [sum(one) / len(one) for one in rates]
            equal = sum(means) / count
            shares.add(f'{size} bytes', count, [one / equal for one in means])
    return total, shares


def _together(testbed, count, size):
    vif = testbed.vif(1)
    sink = testbed.sink(vif)
    data = _testbed.frame(size, _TARGET, vif['mac'])
    return sink, [testbed.source(data, testbed.vif(1)) for _ in range(count)]


def ports(state):
    """Pairs of guests on a switch with one worker, and with two."""
    made = figure.Figure(
        'fig12-ports', 'pairs of guests, 1,500 bytes',
        'NSDI 2014, Figure 12', 'pairs of a sender and a receiver', RATE)
    for workers in (1, 2):
        for count in _PAIRS:
            with _testbed.Testbed(state, workers=workers) as testbed:
                sinks = [_pair(testbed, 1 + pair) for pair in range(count)]
                made.add(f'{workers} worker{"s" * (workers > 1)}', count,
                         list(map(sum, zip(*testbed.rates(*sinks)))))
    return made


def _pair(testbed, segment):
    vif = testbed.vif(segment)
    sink = testbed.sink(vif)
    testbed.source(_testbed.frame(1500, _TARGET, vif['mac']),
                   testbed.vif(segment))
    return sink

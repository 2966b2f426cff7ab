# SPDX-License-Identifier: Apache-2.0
"""Elements that keep packets, pull them, or act when time has come."""
from click_compare.pieces import aside
from click_compare.pieces import merged
from click_compare.pieces import queued
from click_compare.pieces import scheduled
from click_compare.pieces import through

_PACKET = (r'\<45 00 00 1c 12 34 00 00 40 11 14 8f 0a 00 00 01 0a 00 00 02 '
           r'13 88 00 35 00 08 00 00>')
# without a notifier Click never comes to an end of simulated time
_QUEUES = ('Queue', 'NotifierQueue', 'FullNoteQueue', 'QuickNoteQueue',
           'FrontDropQueue', 'ThreadSafeQueue')


def _queue(rng):
    config = f'{rng.choice(_QUEUES)}({rng.choice((1, 5, 300))})'
    way = rng.choice(('Unqueue', 'Unqueue(BURST 4)', 'Unqueue2',
                      'RatedUnqueue(4)', 'TimedUnqueue(2s, 3)',
                      'Burster(1.5s, 2)', 'DelayUnqueue(0.5)',
                      'BandwidthRatedUnqueue(800bps)',
                      'LinkUnqueue(0.7, 8kbps)'))
    return (f'input -> e :: {config} -> {way} -> output', 'length',
            'highwater_length', 'capacity', 'drops')


def _early_drop(rng):
    kind = rng.choice(('RED(2, 8, 0.3)', 'RED(1, 5, 0.5)',
                       'AdaptiveRED(4, 0.4)'))
    return (f'input -> e :: {kind} -> Queue(20) -> RatedUnqueue(1) -> output',
            'drops')


def _own_packets(rng):
    source = rng.choice((
        f'TimedSource(7.3s, {_PACKET})',
        f'RatedSource(DATA {_PACKET}, RATE 2, LIMIT {rng.randint(1, 9)})',
        f'InfiniteSource(DATA {_PACKET}, LIMIT {rng.randint(1, 9)})'))
    return (f'{source} -> MarkIPHeader -> x :: Null; '
            'input -> x -> e :: Counter -> output', 'count')


def _pull_switch(config, *handlers):
    return ('input -> h :: RoundRobinSwitch; h[0] -> Queue(300) -> [0] e :: '
            f'{config} -> Unqueue -> output; h[1] -> Queue(300) -> [1] e',
            *handlers)


def _asked(rng):
    """Address resolution of its own, with answers."""
    late = rng.choice(('', '-> Queue(90) -> DelayUnqueue(0.4) '))
    keywords = rng.choice(('', ', TIMEOUT 5', ', CAPACITY 3', ', POLL_TIMEOUT'
                           ' 2', ', BROADCAST 10.255.255.255'))
    return (f'input -> e :: ARPQuerier(10.0.0.9, 2:2:2:2:2:2{keywords}) -> '
            'Print(arp, 60) -> c :: Classifier(12/0806 20/0001, -); '
            f'c[0] {late}-> a :: ARPResponder(10.0.0.0/8 2:0:0:0:0:9) -> '
            '[1] e; c[1] -> Strip(14) -> CheckIPHeader -> output',
            'count', 'length', 'drops', 'arp_queries', 'arp_responses',
            'stats')


def _mapped(rng):
    kind = rng.choice(('RoundRobinIPMapper', 'IPRewriterPatterns'))
    if kind == 'IPRewriterPatterns':
        spec = 'pattern NAT 0 1'
        text = 'IPRewriterPatterns(NAT 2.2.2.2 4000-4100# - -)'
    else:
        spec, text = 'm', ('m :: RoundRobinIPMapper(- - 1.0.0.1 - 0 1, '
                           '- - 1.0.0.2 8080 0 1)')
    return (f'{text}; input -> r :: RoundRobinSwitch -> [0] e :: IPRewriter('
            f'{spec}, drop, {_timeouts(rng)}) -> output; '
            'r[1] -> IPMirror -> [1] e; '
            'e[1] -> IPPrint(back, TIMESTAMP false) -> Discard',
            'nmappings', 'mapping_failures')


def _timeouts(rng):
    return ', '.join(
        f'{name} {rng.choice((1, 3, 10))}'
        for name in ('TCP_TIMEOUT', 'TCP_DONE_TIMEOUT', 'UDP_TIMEOUT',
                     'GUARANTEE', 'REAP_INTERVAL') if rng.random() < .6) \
        or 'UDP_TIMEOUT 4'


def _translator(rng):
    """A translator whose flows end by time, and what answers come back."""
    kind = rng.choice(('IPRewriter', 'UDPRewriter', 'TCPRewriter'))
    spec = rng.choice(('pattern 2.2.2.2 4000-4004 - - 0 1',
                       'pattern 2.2.2.2 4000-4004# - - 0 1',
                       'pattern 2.2.2.2 4000-4003? - - 0 1', 'keep 0 1',
                       'pattern 2.2.2.2 - - - 0 1', 'pass 1', 'pass 0',
                       'pattern - - 3.3.3.3 80 0 1'))
    times = _timeouts(rng)
    if kind != 'IPRewriter':
        times = 'TIMEOUT {}, GUARANTEE {}'.format(
            rng.choice((1, 3, 10)), rng.choice((1, 2, 9)))
    if kind == 'TCPRewriter':
        times = f'TCP_{times}, TCP_DONE_TIMEOUT 2'.replace(
            'GUARANTEE', 'TCP_GUARANTEE')
    capacity = rng.choice(('', ', MAPPING_CAPACITY 4'))
    return (f'input -> e :: {kind}({spec}, drop, {times}{capacity}) -> '
            'x :: Tee -> output; x[1] -> CheckIPHeader -> Queue(90) -> '
            f'DelayUnqueue({rng.choice((0.5, 2.5, 6))}) -> IPMirror -> '
            '[1] e; e[1] -> IPPrint(back, TIMESTAMP false) -> Discard',
            'nmappings', 'table_size', 'mapping_failures', 'size')


TIMED = (
    _queue, _queue, _queue, _early_drop, _own_packets, _own_packets, _asked,
    _asked, _mapped, _mapped, _translator, _translator, _translator,
    lambda r: aside(f'RatedSplitter({r.choice((1, 5, 20))})', 'rate'),
    lambda r: aside('BandwidthRatedSplitter(100Bps)'),
    lambda r: queued(f'DelayShaper({r.choice((0.1, 0.8))})', 'delay'),
    lambda r: queued('PullNull -> Counter', 'name'),
    lambda r: queued('RandomSample(0.5)', 'drops', 'sampling_prob'),
    lambda r: queued('DecIPTTL', 'drops'),
    lambda r: queued('CheckLength(40)', 'length'),
    lambda r: ('input -> Queue(90) -> e :: PullTee -> Unqueue -> output; '
               'e[1] -> Print(tee, 9) -> Discard',),
    lambda r: _pull_switch(f'PullSwitch({r.randint(0, 2)})', 'switch'),
    lambda r: _pull_switch(f'SimplePullSwitch({r.randint(-1, 1)})',
                           'switch'),
    lambda r: _pull_switch('StaticPullSwitch(1)'),
    lambda r: _pull_switch('TimeSortedSched'),
    lambda r: _pull_switch('SimpleRoundRobinSched'),
    lambda r: _pull_switch('SimplePrioSched'),
    lambda r: scheduled('SimplePrioSched'),
    lambda r: merged(f'StaticSwitch({r.randint(0, 2)})', 3),
    lambda r: ('input -> [0] e :: InputSwitch({}) -> output; Idle -> [1] e'
               .format(r.randint(0, 1)), 'switch'),
    lambda r: ('input -> e :: Hub; e[1] -> output; e[0] -> Discard; '
               'Idle -> [1] e',),
    lambda r: through(f'IPReassembler(HIMEM {r.choice((100, 4000))})'),
    lambda r: aside('IPFragmenter(60) -> IPReassembler', outputs=1),
)

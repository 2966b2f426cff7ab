# SPDX-License-Identifier: Apache-2.0
"""Pieces of random configurations: each takes packets in and gives some on."""
from click_compare.expressions import expression
from click_compare.expressions import pattern
from click_compare.packets import ADDRESSES


def piece(rng, name):
    """Return a compound's text, and handlers of its element ``e`` to read."""
    make = rng.choice(PIECES)
    text, *handlers = make(rng)
    return f'{name} :: {{ {text} }};', [f'{name}/e.{h}' for h in handlers]


def _through(config, *handlers):
    """An element with one input and one output."""
    return f'input -> e :: {config} -> output', *handlers


def _aside(config, *handlers, outputs=2):
    """An element whose further outputs are shown and dropped."""
    rest = '; '.join(f'e[{n}] -> Print(aside{n}, 48) -> Discard'
                     for n in range(1, outputs))
    return f'input -> e :: {config} -> output; {rest}', *handlers


def _merged(config, outputs, *handlers):
    """An element whose outputs meet again."""
    rest = '; '.join(f'e[{n}] -> Paint({n + 3}) -> x'
                     for n in range(1, outputs))
    return (f'input -> e :: {config} -> x :: Null -> output; {rest}',
            *handlers)


def _scheduled(config, *handlers):
    """Two queues and what takes packets from them."""
    return ('input -> h :: HashSwitch(12, 4); h[0] -> q0 :: Queue(300); '
            f'h[1] -> q1 :: Queue(400); q0 -> e :: {config} '
            '-> Unqueue -> output; q1 -> [1] e', *handlers)


def _rewriter(config):
    """A rewriter that sees answers to every second packet, too."""
    return (f'e :: {config}; input -> r :: RoundRobinSwitch -> [0] e; '
            'r[1] -> t :: Tee(2) -> [0] e; t[1] -> Discard; '
            'e[0] -> x :: Tee(2) -> output; '
            'x[1] -> CheckIPHeader -> IPMirror -> [1] e; '
            'e[1] -> IPPrint(back, TIMESTAMP false) -> Discard',)


_COUNTERS = ('count', 'byte_count')
_NAT = ('pattern 2.2.2.2 4000-4100# - - 0 1', 'pattern 2.2.2.2 - - - 0 1',
        'pattern - - 3.3.3.3 80 0 1', 'pass 0', 'drop', 'keep 0 1',
        'pattern 2.2.2.1-2.2.2.9 4000-4003# - - 0 1')
_ERRORS = ('timeexceeded, transit', 'unreachable, host', '3, 4, PMTU 500',
           'parameterproblem', 'redirect, net', '11, 1', '3, 13')
_ROUTES = ('10.0.0.0/8 1.2.3.4 0, 18.26.0.0/16 1, 0/0 0',
           '10.0.0.1/32 1, 10.0.0.0/24 9.9.9.9 0, 192.168.0.0/16 1',
           '0/1 0, 128/1 8.8.8.8 1, 224.0.0.5 0')


def _tables(rng):
    name = rng.choice(('Radix', 'Direct', 'Range', 'Linear', 'Sorted',
                       'Static'))
    return _merged(f'{name}IPLookup({rng.choice(_ROUTES)})', 2)


def _numbers(rng, name, *choices):
    return _through(f'{name}({rng.choice(choices)})')


PIECES = (
    # printing and counting
    lambda r: _through('IPPrint(p, TIMESTAMP false, ID {}, TTL {}, TOS {}, '
                       'LENGTH {}, PAYLOAD {})'.format(
                           *(r.choice(('true', 'false')) for _ in range(4)),
                           r.choice(('HEX', 'ASCII', 'false')))),
    lambda r: _numbers(r, 'Print', 'q, 4', 'q, 64', 'q, -1', 'q, 20, '
                       'CONTENTS ASCII', 'q, PRINTANNO true'),
    lambda r: _through('Counter', *_COUNTERS),
    lambda r: _through('AverageCounter', 'count'),
    lambda r: _through('AggregateCounter', 'count', 'nagg'),
    lambda r: _through('AggregateIPFlows(FRAGMENTS false)'),
    # checks
    lambda r: _aside('CheckIPHeader(VERBOSE true)', 'drops'),
    lambda r: _aside('CheckIPHeader2', 'drops'),
    lambda r: _aside('CheckTCPHeader', 'drops'),
    lambda r: _aside('CheckUDPHeader', 'drops'),
    lambda r: _aside('CheckICMPHeader', 'drops'),
    lambda r: _aside(f'CheckLength({r.choice((20, 40, 60))})'),
    lambda r: _aside(f'CheckPaint({r.randint(0, 4)})'),
    # classification
    lambda r: _aside(f'IPFilter({r.choice(("allow", "deny"))} '
                     f'{expression(r)}, {r.choice(("allow", "1"))} '
                     f'{expression(r)}, allow all)'),
    lambda r: _merged(f'IPClassifier({expression(r)}, {expression(r)}, -)',
                      3),
    lambda r: _merged(f'Classifier({pattern(r)}, {pattern(r)}, -)', 3),
    lambda r: _merged(f'HashSwitch({r.choice((0, 8, 12))}, '
                      f'{r.choice((1, 4, 8))})', r.choice((2, 3, 4))),
    lambda r: _merged('RoundRobinSwitch', 3),
    lambda r: _merged('StrideSwitch(3, 1)', 2, 'tickets0'),
    lambda r: _merged('PaintSwitch', 3),
    lambda r: _merged(f'Switch({r.choice((0, 1, 2))})', 3, 'switch'),
    lambda r: _merged('RandomSwitch', 3),
    lambda r: _merged('PaintTee(1)', 2),
    lambda r: _merged('Tee', 2),
    lambda r: _merged(f'IPFilter(0 {expression(r)}, 1 {expression(r)})', 2),
    _tables,
    # changes
    lambda r: _aside('DecIPTTL', 'drops'),
    lambda r: _numbers(r, 'SetIPDSCP', 0, 46, 63),
    lambda r: _numbers(r, 'SetIPECN', 'ect1', 'ce', '0', '2'),
    lambda r: _through('MarkIPCE'),
    lambda r: _through('SetIPChecksum'),
    lambda r: _through('SetUDPChecksum'),
    lambda r: _through('SetTCPChecksum'),
    lambda r: _through(f'StoreIPAddress({r.choice(ADDRESSES)}, '
                       f'{r.choice(("src", "dst", 12, 16))})'),
    lambda r: _through(f'SetIPAddress({r.choice(ADDRESSES)})'),
    lambda r: _numbers(r, 'GetIPAddress', 12, 16, 'IP src'),
    lambda r: _through('FixIPSrc(10.0.0.9)'),
    lambda r: _aside('IPGWOptions(10.0.0.9)', 'drops'),
    lambda r: _through('DropBroadcasts', 'drops'),
    lambda r: _numbers(r, 'Truncate', 20, 28, 40, 60),
    lambda r: _numbers(r, 'TruncateIPPayload', 0, 4, 20),
    lambda r: _numbers(r, 'Pad', 40, 60, ''),
    lambda r: _numbers(r, 'Paint', 0, 1, 2),
    lambda r: _through(f'StoreData({r.randrange(40)}, '
                       f'\\<{r.getrandbits(16):04x}>)'),
    lambda r: _aside(f'IPFragmenter({r.choice((68, 44, 60, 100))}, '
                     f'{r.choice(("true", "false"))})', 'drops',
                     'fragments'),
    lambda r: _through('IPMirror'),
    lambda r: _through('Strip(4) -> Unstrip(4)'),
    lambda r: _through('StripIPHeader -> UnstripIPHeader'),
    lambda r: _through('SetCRC32 -> CheckCRC32'),
    # encapsulation
    lambda r: _through(f'IPEncap({r.choice((4, "tcp", 17))}, 1.0.0.1, '
                       f'{r.choice(("DST_ANNO", "2.0.0.2"))}, '
                       f'TTL {r.randint(1, 255)})'),
    lambda r: _through('UDPIPEncap(1.0.0.1, 7, 2.0.0.2, 53, true)'),
    lambda r: _through('ICMPPingEncap(1.0.0.1, 2.0.0.2)'),
    lambda r: _through(f'IP6Encap(17, ::1, 3ffe::2, HLIM {r.randint(0, 3)}, '
                       'CLASS 7) -> CheckIP6Header -> IP6Print(six) -> '
                       'd :: DecIP6HLIM -> IP6Mirror -> SetIP6DSCP(9) -> '
                       'Print(mirrored, 60) -> Strip(40) -> CheckIPHeader'),
    lambda r: _through('EtherEncap(0x0800, 1:1:1:1:1:1, 2:2:2:2:2:2) -> '
                       'EtherMirror -> Strip(14)'),
    lambda r: _through('EtherEncap(0x0800, 1:1:1:1:1:1, 2:2:2:2:2:2) -> '
                       'VLANEncap(7) -> Print(vlan, 40) -> VLANDecap -> '
                       'Strip(14)'),
    # answers
    lambda r: _through(f'ICMPError(10.9.9.9, {r.choice(_ERRORS)})'),
    lambda r: _aside('ICMPPingResponder'),
    # queues and schedulers
    lambda r: _through('{}({}) -> Unqueue(BURST {})'.format(
        r.choice(('Queue', 'SimpleQueue', 'MixedQueue', 'FrontDropQueue')),
        r.choice((200, 300)), r.choice((1, 4, 32))), 'drops'),
    lambda r: _scheduled('RoundRobinSched'),
    lambda r: _scheduled('PrioSched'),
    lambda r: _scheduled('DRRSched(1500)'),
    lambda r: _scheduled('StrideSched(3, 1)'),
    # flows
    lambda r: _rewriter(f'IPRewriter({r.choice(_NAT)}, drop)'),
    lambda r: _rewriter(f'UDPRewriter({r.choice(_NAT)}, drop)'),
    lambda r: _rewriter(f'TCPRewriter({r.choice(_NAT)}, drop)'),
    lambda r: _rewriter('IPAddrRewriter(pattern 2.2.2.1-2.2.2.9# - 0 1, '
                        'drop)'),
    lambda r: _rewriter('IPAddrPairRewriter(pattern 2.2.2.2 - 0 1, drop)'),
    lambda r: _rewriter('ICMPPingRewriter(pattern 2.2.2.2 - 0-65535# 0 1, '
                        'drop)'),
    # chance, which follows a seed
    lambda r: _aside(f'RandomSample({r.choice((.2, .5, .9))})', 'drops'),
    lambda r: _through('SetRandIPAddress(10.0.0.0/8)'),
    lambda r: _merged('RandomSwitch', 2),
)

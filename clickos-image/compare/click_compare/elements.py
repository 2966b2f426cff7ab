# SPDX-License-Identifier: Apache-2.0
"""Elements that take IP packets, each in a form in which it can stand."""
from click_compare.expressions import expression
from click_compare.expressions import pattern
from click_compare.packets import ADDRESSES
from click_compare.pieces import aside
from click_compare.pieces import merged
from click_compare.pieces import numbers
from click_compare.pieces import rewriter
from click_compare.pieces import scheduled
from click_compare.pieces import through


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
    return merged(f'{name}IPLookup({rng.choice(_ROUTES)})', 2)


PIECES = (
    # printing and counting
    lambda r: through('IPPrint(p, TIMESTAMP false, ID {}, TTL {}, TOS {}, '
                      'LENGTH {}, PAYLOAD {})'.format(
                           *(r.choice(('true', 'false')) for _ in range(4)),
                           r.choice(('HEX', 'ASCII', 'false')))),
    lambda r: numbers(r, 'Print', 'q, 4', 'q, 64', 'q, -1', 'q, 20, '
                      'CONTENTS ASCII', 'q, PRINTANNO true'),
    lambda r: through('Counter', *_COUNTERS),
    lambda r: through('AverageCounter', 'count'),
    lambda r: through('AggregateCounter', 'count', 'nagg'),
    lambda r: through('AggregateIPFlows(FRAGMENTS false)'),
    # checks
    lambda r: aside('CheckIPHeader(VERBOSE true)', 'drops'),
    lambda r: aside('CheckIPHeader2', 'drops'),
    lambda r: aside('CheckTCPHeader', 'drops'),
    lambda r: aside('CheckUDPHeader', 'drops'),
    lambda r: aside('CheckICMPHeader', 'drops'),
    lambda r: aside(f'CheckLength({r.choice((20, 40, 60))})'),
    lambda r: aside(f'CheckPaint({r.randint(0, 4)})'),
    # classification
    lambda r: aside(f'IPFilter({r.choice(("allow", "deny"))} '
                    f'{expression(r)}, {r.choice(("allow", "1"))} '
                    f'{expression(r)}, allow all)'),
    lambda r: merged(f'IPClassifier({expression(r)}, {expression(r)}, -)',
                     3),
    lambda r: merged(f'Classifier({pattern(r)}, {pattern(r)}, -)', 3),
    lambda r: merged(f'HashSwitch({r.choice((0, 8, 12))}, '
                     f'{r.choice((1, 4, 8))})', r.choice((2, 3, 4))),
    lambda r: merged('RoundRobinSwitch', 3),
    lambda r: merged('StrideSwitch(3, 1)', 2, 'tickets0'),
    lambda r: merged('PaintSwitch', 3),
    lambda r: merged(f'Switch({r.choice((0, 1, 2))})', 3, 'switch'),
    lambda r: merged('RandomSwitch', 3),
    lambda r: merged('PaintTee(1)', 2),
    lambda r: merged('Tee', 2),
    lambda r: merged(f'IPFilter(0 {expression(r)}, 1 {expression(r)})', 2),
    _tables,
    # changes
    lambda r: aside('DecIPTTL', 'drops'),
    lambda r: numbers(r, 'SetIPDSCP', 0, 46, 63),
    lambda r: numbers(r, 'SetIPECN', 'ect1', 'ce', '0', '2'),
    lambda r: through('MarkIPCE'),
    lambda r: through('SetIPChecksum'),
    lambda r: through('SetUDPChecksum'),
    lambda r: through('SetTCPChecksum'),
    lambda r: through(f'StoreIPAddress({r.choice(ADDRESSES)}, '
                      f'{r.choice(("src", "dst", 12, 16))})'),
    lambda r: through(f'SetIPAddress({r.choice(ADDRESSES)})'),
    lambda r: numbers(r, 'GetIPAddress', 12, 16, 'IP src'),
    lambda r: through('FixIPSrc(10.0.0.9)'),
    lambda r: aside('IPGWOptions(10.0.0.9)', 'drops'),
    lambda r: through('DropBroadcasts', 'drops'),
    lambda r: numbers(r, 'Truncate', 20, 28, 40, 60),
    lambda r: numbers(r, 'TruncateIPPayload', 0, 4, 20),
    lambda r: numbers(r, 'Pad', 40, 60, ''),
    lambda r: numbers(r, 'Paint', 0, 1, 2),
    lambda r: through(f'StoreData({r.randrange(40)}, '
                      f'\\<{r.getrandbits(16):04x}>)'),
    lambda r: aside(f'IPFragmenter({r.choice((68, 44, 60, 100))}, '
                    f'{r.choice(("true", "false"))})', 'drops',
                    'fragments'),
    lambda r: through('IPMirror'),
    lambda r: through('Strip(4) -> Unstrip(4)'),
    lambda r: through('StripIPHeader -> UnstripIPHeader'),
    lambda r: through('SetCRC32 -> CheckCRC32'),
    # encapsulation
    lambda r: through(f'IPEncap({r.choice((4, "tcp", 17))}, 1.0.0.1, '
                      f'{r.choice(("DST_ANNO", "2.0.0.2"))}, '
                      f'TTL {r.randint(1, 255)})'),
    lambda r: through('UDPIPEncap(1.0.0.1, 7, 2.0.0.2, 53, true)'),
    lambda r: through('ICMPPingEncap(1.0.0.1, 2.0.0.2)'),
    lambda r: through(f'IP6Encap(17, ::1, 3ffe::2, HLIM {r.randint(0, 3)}, '
                      'CLASS 7) -> CheckIP6Header -> IP6Print(six) -> '
                      'd :: DecIP6HLIM -> IP6Mirror -> SetIP6DSCP(9) -> '
                      'Print(mirrored, 60) -> Strip(40) -> CheckIPHeader'),
    lambda r: through('EtherEncap(0x0800, 1:1:1:1:1:1, 2:2:2:2:2:2) -> '
                      'EtherMirror -> Strip(14)'),
    lambda r: through('EtherEncap(0x0800, 1:1:1:1:1:1, 2:2:2:2:2:2) -> '
                      'VLANEncap(7) -> Print(vlan, 40) -> VLANDecap -> '
                      'Strip(14)'),
    # answers
    lambda r: through(f'ICMPError(10.9.9.9, {r.choice(_ERRORS)})'),
    lambda r: aside('ICMPPingResponder'),
    # queues and schedulers
    lambda r: through('{}({}) -> Unqueue(BURST {})'.format(
        r.choice(('Queue', 'FrontDropQueue')),
        r.choice((200, 300)), r.choice((1, 4, 32))), 'drops'),
    lambda r: scheduled('RoundRobinSched'),
    lambda r: scheduled('PrioSched'),
    lambda r: scheduled('DRRSched(1500)'),
    lambda r: scheduled('StrideSched(3, 1)'),
    # flows
    lambda r: rewriter(f'IPRewriter({r.choice(_NAT)}, drop)'),
    lambda r: rewriter(f'UDPRewriter({r.choice(_NAT)}, drop)'),
    lambda r: rewriter(f'TCPRewriter({r.choice(_NAT)}, drop)'),
    lambda r: rewriter('IPAddrRewriter(pattern 2.2.2.1-2.2.2.9# - 0 1, '
                       'drop)'),
    lambda r: rewriter('IPAddrPairRewriter(pattern 2.2.2.2 - 0 1, drop)'),
    lambda r: rewriter('ICMPPingRewriter(pattern 2.2.2.2 - 0-65535# 0 1, '
                       'drop)'),
    # chance, which follows a seed
    lambda r: aside(f'RandomSample({r.choice((.2, .5, .9))})', 'drops'),
    lambda r: through('SetRandIPAddress(10.0.0.0/8)'),
    lambda r: merged('RandomSwitch', 2),
)

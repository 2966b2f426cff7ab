# SPDX-License-Identifier: Apache-2.0
"""A row for each class of elements: bytes, copies, turns, tables, state.

The peer of each row is the faster of Click and FastClick. Where neither is
at hand, an older program of ours stands in (``--engine old=PATH``).
``PEERS`` names what an engineer would compare a class with today.
"""

import ipaddress
import random

from click_bench.configurations import CHECK
from click_bench.configurations import Configuration
from click_bench.configurations import endless
from click_bench.configurations import replay
from click_bench import traces

#: Class of rows, by the beginning of their names: the peer.
PEERS = {
    'a': 'bytes: the faster of Click and FastClick',
    'b': 'copies: the faster of Click and FastClick',
    'c': 'turns: the faster of Click and FastClick',
    'e': 'tables: VPP with the same routes or rules',
    'f': 'state: VPP NAT44 and the faster of Click and FastClick',
    'g': 'records: the faster of Click and FastClick',
}
TUNNEL = 'UDPIPEncap(192.0.2.1, 4789, 192.0.2.2, 4789, CHECKSUM true)'
#: The beginnings of the names of rows with a full BGP table.
BGP_ROWS = ('e8', 'e9')
#: Outputs of a route lookup.
OUTPUTS = 4


def byte_rows():
    """Whatever reads or writes more than headers."""
    yield 'a0-udp-encap-checksum-1500', replay('f1_1500', TUNNEL)
    yield 'a1-set-udp-checksum-1500', replay(
        'f1_1500', CHECK + ' -> SetUDPChecksum')
    yield 'a2-check-udp-checksum-imix', replay(
        'imix', CHECK + ' -> SetUDPChecksum -> CheckUDPHeader')
    yield 'a3-set-crc-1500', replay('f1_1500', 'SetCRC32')
    yield 'a4-set-and-check-crc-1500', replay(
        'f1_1500', 'SetCRC32 -> CheckCRC32')
    yield 'a5-search-1500', replay(
        'f1_1500', 's :: Search("attack"); s[0] -> d; s[1] -> d;')
    yield 'a6-string-matcher-1500', replay(
        'f1_1500', 'm :: StringMatcher("attack", "evil"); m[1] -> d; '
        'm[0] -> d;')
    yield 'a7-align-1500', replay('f1_1500', 'Align(4, 2)')


def copy_rows():
    """Sharing, fragments and reassembly."""
    tee = 't4 :: Tee(4); t4[0] -> Discard; t4[1] -> Discard; '
    yield 'b0-tee-four', endless(tee + 't4[2] -> Discard; t4[3] -> d;')
    yield 'b1-tee-four-1500', replay(
        'f1_1500', tee + 't4[2] -> Discard; t4[3] -> d;')
    yield 'b2-fragmenter', replay(
        'f1_1500', CHECK + ' -> IPFragmenter(576)')
    yield 'b3-reassembler', replay(
        'f1_1500', CHECK + ' -> IPFragmenter(576) -> IPReassembler')
    yield 'b4-icmp-error', endless(
        CHECK + ' -> ICMPError(10.0.0.1, timeexceeded)')
    yield 'b5-ip-encap', endless(
        CHECK + ' -> IPEncap(4, 192.0.2.1, 192.0.2.2)')


def queues(scheduler, count, burst, arguments=''):
    """Return `count` full queues in front of a scheduler."""
    names = ['q%d' % i for i in range(count)]
    text = 'h :: RoundRobinSwitch; s :: %s%s;\n' % (scheduler, arguments)
    for i, name in enumerate(names):
        text += 'h[%d] -> %s :: Queue(1024) -> [%d]s;\n' % (i, name, i)
    return endless('h;', text + 's -> Unqueue(BURST %d) -> d;' % burst)


def turn_rows():
    """Schedulers, switches and tasks."""
    for burst in (1, 32):
        yield 'c0-prio-eight-burst-%d' % burst, queues('PrioSched', 8, burst)
    yield 'c1-drr-eight', queues('DRRSched', 8, 32)
    yield 'c2-stride-eight', queues(
        'StrideSched', 8, 32, '(%s)' % ', '.join('12345678'))
    yield 'c3-round-robin-eight', queues('RoundRobinSched', 8, 32)
    outputs = ' '.join('h[%d] -> Queue(1024) -> [%d]r;' % (i, i)
                       for i in range(4))
    yield 'c4-hash-switch-queues-round-robin', replay(
        'f10k', 'h;', 'h :: HashSwitch(26, 12); r :: RoundRobinSched; %s '
        'r -> Unqueue(BURST 32) -> d;' % outputs)
    yield 'c5-unqueue-one', endless('Queue(1024) -> Unqueue(BURST 1)')
    single = endless('Queue -> [0]s; Idle -> [1]s; '
                     's -> Unqueue -> d;', 's :: %s;')
    for name in ('PrioSched', 'RoundRobinSched'):
        yield 'c6-%s-single' % name.lower(), (
            single % name).replace('BURST 32', 'BURST 1')


def routes(count):
    """Return IPv4 routes as text, lengths as in a BGP table."""
    found = traces.prefixes(count, traces.BGP_LENGTHS, 32, 60)
    return ['%s/%d 192.0.2.%d %d' % (
        ipaddress.IPv4Address(network), length, i % 250 + 1, i % OUTPUTS)
        for i, (network, length) in enumerate(found)]


def routes6(count):
    """Return IPv6 routes as text, lengths as in a BGP table."""
    found = traces.prefixes(count, traces.BGP6_LENGTHS, 128, 61)
    return ['%s/%d fe80::%x %d' % (
        ipaddress.IPv6Address(network), length, i % 250 + 1, i % OUTPUTS)
        for i, (network, length) in enumerate(found)]


def mixed_rules(count):
    """Return rules of several kinds, the last of which allows the rest."""
    numbers = random.Random(62)

    def net(most):
        length = numbers.choice((16, 20, 24, 28, 32))
        network = numbers.randrange(11 << 24, most << 24)
        return '%s/%d' % (ipaddress.IPv4Address(
            network >> (32 - length) << (32 - length)), length)

    kinds = (
        lambda: 'src net %s && dst port %d' % (
            net(200), numbers.randrange(65536)),
        lambda: 'dst net %s && tcp' % net(200),
        lambda: 'src net %s && dst net %s' % (net(200), net(200)),
        lambda: 'src host %s && udp && dst port >= %d' % (
            net(200).partition('/')[0], numbers.randrange(65536)),
        lambda: 'dst net %s && src port %d && ip proto %d' % (
            net(200), numbers.randrange(65536), numbers.choice((6, 17))))
    rules = ['%s %s' % (numbers.choice(('drop', 'allow')),
                        numbers.choice(kinds)()) for _ in range(count)]
    return ', '.join(rules + ['allow all'])


def counted(table):
    """Return a table `rt` whose outputs all lead to the counter."""
    return 'rt :: %s; %s' % (table, ' '.join(
        'rt[%d] -> d;' % i for i in range(OUTPUTS)))


def table_rows():
    """Routes and rules, many of them."""
    path = CHECK + ' -> rt;'
    for kind, count in (('Range', 60_000), ('Radix', 60_000)):
        text = counted('%sIPLookup(0.0.0.0/0 0, %s)' % (
            kind, ', '.join(routes(count))))
        yield 'e0-%s-%d' % (kind.lower(), count), Configuration(
            replay('dstany', path, text), 2, 4)
    for count in (1000, 60_000):
        text = counted('LookupIP6Route(::/0 0, %s)' % ', '.join(
            routes6(count)))
        yield 'e1-ip6-%d' % count, Configuration(
            replay('dst6', 'Strip(14) -> CheckIP6Header -> '
                   'GetIP6Address(24) -> rt;', text), 2, 4)
    for count in (1000, 10_000):
        text = 'f :: IPFilter(%s);' % mixed_rules(count)
        yield 'e2-ipfilter-mixed-%d' % count, Configuration(
            replay('dstany', CHECK + ' -> f', text), 2, 5)


def bgp_rows():
    """Full BGP tables; a guest of usual size has less room."""
    text = counted('RadixIPLookup(0.0.0.0/0 0, %s)' % ', '.join(
        routes(1_000_000)))
    yield 'e8-bgp-1m', Configuration(
        replay('dstany', CHECK + ' -> rt;', text), 2, 5)
    text = counted('LookupIP6Route(::/0 0, %s)' % ', '.join(routes6(200_000)))
    yield 'e9-bgp6-200k', Configuration(replay(
        'dst6', 'Strip(14) -> CheckIP6Header -> GetIP6Address(24) -> rt;',
        text), 2, 5)


def state_rows():
    """Translation and what it remembers."""
    path = CHECK + ' -> [0]rw; '
    used_up = ('rw :: IPAddrRewriter(pattern 198.18.0.0-198.18.15.255 - 0 1, '
               'drop); Idle -> [1]rw; rw[1] -> Discard;')
    yield 'f0-addresses-used-up', Configuration(replay(
        'f10k', 'both :: Tee(2); both[1] -> d; both[0] -> ' + path +
        'rw[0] -> Discard;', used_up), 1, 3)
    both = ('rw :: IPRewriter(pattern 203.0.113.1 1024-65535 - - 0 1, drop, '
            'UDP_TIMEOUT 3600, UDP_GUARANTEE 3600);')
    yield 'f1-nat-both-ways', replay(
        'f10k', path + 'rw[0] -> IPMirror -> [1]rw; rw[1] -> d;', both)
    yield 'f2-rate-monitor', replay(
        'f10k', CHECK + ' -> IPRateMonitor(PACKETS, 0, 1, MEMORY 64)')


def record_rows():
    """Records of packets."""
    yield 'g0-summary-six-fields', replay(
        'f10k', CHECK + ' -> ToIPSummaryDump(/dev/null, FIELDS timestamp '
        'ip_src sport ip_dst dport ip_len) -> d;')


def all_of_them(only=()):
    """Return all rows by name.

    A full BGP table takes half a minute to write, so its rows are there only
    if `only`, the beginnings of the wanted names, has one of them.
    """
    groups = [byte_rows, copy_rows, turn_rows, table_rows, state_rows,
              record_rows]
    if any(name.startswith(BGP_ROWS) for name in only):
        groups.append(bgp_rows)
    found = {}
    for group in groups:
        for name, made in group():
            if isinstance(made, str):
                made = Configuration(made)
            found[name] = made
    return found

# SPDX-License-Identifier: Apache-2.0
"""The configurations. Each counts packets in `d :: Discard` for $T s."""

import dataclasses
import random

from click_bench import router
from click_bench import traces

CHECK = 'Strip(14) -> CheckIPHeader'
TABLES = ('RadixIPLookup', 'DirectIPLookup', 'LinearIPLookup',
          'SortedIPLookup', 'RangeIPLookup')
MACS = '00:00:c0:ae:67:ef, 00:00:c0:4f:71:ef'
REWRITER = ('MAPPING_CAPACITY 4194304, UDP_TIMEOUT 3600, '
            'UDP_GUARANTEE 3600)')


@dataclasses.dataclass
class Configuration:
    """A configuration and how long it runs.

    The time of a packet is the difference between a short and a long run,
    so that the start and the first round through a trace do not count.
    """

    text: str
    short_s: float = 0.4
    long_s: float = 1.4


def source():
    """Return the element that makes the same packet again and again."""
    return ('InfiniteSource(DATA \\<%s>, LIMIT -1, BURST 32, '
            'TIMESTAMP false)' % traces.first_flow().hex())


def frame(declarations):
    """Return what every configuration begins with."""
    return ('Script(TYPE ACTIVE, wait $T, stop);\nd :: Discard;\n%s\n'
            % declarations)


def endless(path, declarations=''):
    """Return a configuration that sends one packet through `path`."""
    return frame(declarations) + source() + through(path)


def replay(trace, path, declarations=''):
    """Return a configuration that sends a trace through `path` in a loop."""
    loop = (
        'FromDump(traces/%s.pcap, STOP false, END_CALL u.active true)'
        ' -> q :: Queue(1100000);\n'
        'q -> u :: Unqueue(BURST 32, ACTIVE false) -> t :: Tee(2);\n'
        't[0] -> q;\nt[1]' % trace)
    return frame(declarations) + loop + through(path)


def through(path):
    """Return a connection to the counter, through `path` if it has one.

    A path that ends with a semicolon leads to the counter by itself.
    """
    if path.endswith(';'):
        return ' -> ' + path + '\n'
    return ' -> ' + (path + ' -> ' if path else '') + 'd;\n'


def sources():
    """Sources and the simplest elements."""
    yield '00-src-inf', endless('')
    yield '01-src-replay-f1', replay('f1', '')
    yield '02-src-replay-f10k', replay('f10k', '')
    yield '03-src-replay-f1m', Configuration(replay('f1m', ''), 2, 3.5)
    yield '04-counter', endless('Counter')
    yield '05-src-unique', endless('StoreData(0, \\<00>)')
    queue = 'Queue(1024) -> Unqueue(BURST 32)'
    yield '10-wire-queue', endless(queue)
    yield '11-ethermirror', endless('EtherMirror')
    yield '12-ethermirror-queue', endless('EtherMirror -> ' + queue)
    yield '13-strip-check', endless(CHECK)
    yield '14-strip-check-replay10k', replay('f10k', CHECK)
    yield '15-strip-check-replay1m', Configuration(
        replay('f1m', CHECK), 2, 3.5)
    yield '20-dst1k-src-strip-check', replay('dst1k', CHECK)


def lookup(table, prefixes, port=0):
    """Return a route lookup element."""
    listed = ['%s 18.26.4.%d %d' % (prefix, i % 250 + 1, port)
              for i, prefix in enumerate(prefixes)]
    listed.append('0.0.0.0/0 18.26.4.1 %d' % port)
    return '%s(%s)' % (table, ', '.join(listed))


def prefixes(permutation=None):
    """Return the routes as text, in another order for each permutation."""
    found = ['%s/%d' % (traces.ipaddress.IPv4Address(network), length)
             for network, length in traces.routes()]
    if permutation is not None:
        random.Random(permutation).shuffle(found)
    return found


def lookups():
    """Route lookups alone."""
    path = CHECK + ' -> rt'
    for table in TABLES:
        yield ('21-lookup1-' + table,
               endless(path, 'rt :: %s;' % lookup(table, [])))
        for order, name in ((None, ''), (1, '-permuted')):
            text = replay('dst1k', path,
                          'rt :: %s;' % lookup(table, prefixes(order)))
            yield ('22-lookup1k-' + table + name,
                   Configuration(text, 0.5, 1.5))


def routers():
    """IP routers with two interfaces, error paths included."""
    default = ['0.0.0.0/0 18.26.4.1 1']
    for table in ('Radix', 'Linear'):
        text = frame('') + router.text(table + 'IPLookup', default)
        yield ('25-iprouter-%s-std' % table.lower(),
               text + source() + ' -> c1;\n')
    for table in ('Radix', 'Direct'):
        for order, name in ((None, ''), (2, '-permuted')):
            routes = ['%s 18.26.4.%d 1' % (prefix, i % 250 + 1)
                      for i, prefix in enumerate(prefixes(order))]
            declarations = router.text(table + 'IPLookup', routes + default)
            yield ('26-iprouter-%s-1k%s' % (table.lower(), name),
                   Configuration(replay('dst1k', 'c1;', declarations),
                                 0.5, 1.5))


def rules(count, permutation=None):
    """Return a filter that drops `count` services and allows the rest."""
    drops = ['drop src net 172.%d.%d.0/24 && dst port %d'
             % (16 + i // 256, i % 256, 2000 + i) for i in range(count)]
    if permutation is not None:
        random.Random(permutation).shuffle(drops)
    return 'f :: IPFilter(%s,\n allow all);' % ',\n '.join(drops)


def filters():
    """Firewalls and classifiers."""
    path = CHECK + ' -> f'
    for count in (10, 100, 1000):
        times = (3, 9) if count == 1000 else (0.5, 1.5)
        yield ('30-ipfilter-%d' % count,
               Configuration(endless(path, rules(count)), *times))
        for order, name in ((None, ''), (3, '-permuted')):
            text = replay('f10k', path, rules(count, order))
            yield ('31-ipfilter-%d-10kflows%s' % (count, name),
                   Configuration(text, *times))
    yield ('32-ipfilter-1000-1mflows',
           Configuration(replay('f1m', path, rules(1000)), 5, 12))
    patterns = (
        'tcp syn, tcp dst port 80, tcp dst port 443, udp dst port 53, '
        'icmp type echo, ip proto 50, src net 192.168.0.0/16, '
        'dst host 10.9.8.7, udp src port 4969, -')
    outputs = ' '.join('c[%d] -> d;' % i for i in range(10))
    yield '35-ipclassifier-10', endless(
        '%s -> c :: IPClassifier(%s); %s' % (CHECK, patterns, outputs))


def rewriters():
    """Address translation and load balancing."""
    path = CHECK + ' -> [0]rw'
    rest = ' Idle -> [1]rw; rw[1] -> Discard;'
    nat = ('rw :: IPRewriter(pattern 203.0.113.1 1024-65535 - - 0 1, drop, '
           + REWRITER + ';' + rest)
    yield '40-nat-1flow', endless(path, nat)
    yield '41-nat-10kflows', Configuration(
        replay('f10k', path, nat), 0.5, 1.5)
    cgn = ('cgn :: PortBlockMapper(1.0.0.0/24, 203.0.113.0/24); '
           'rw :: IPRewriter(cgn, drop, ' + REWRITER + ';' + rest)
    yield '43-cgn-1flow', endless(path, cgn)
    yield '42-nat-1mflows', Configuration(replay('f1m', path, nat), 7, 10)
    servers = ', '.join('- - 10.1.0.%d - 0 1' % (i + 1) for i in range(8))
    balancer = ('bal :: RoundRobinIPMapper(%s); rw :: IPRewriter(bal, drop, '
                % servers + REWRITER + ';' + rest)
    yield '50-lb-rr-rewriter-10kflows', Configuration(
        replay('f10k', path, balancer), 0.5, 1.5)
    pool = ('bal :: ServerPool(10.1.0.254, %s); rw :: IPRewriter(bal, drop, '
            % ', '.join('10.1.0.%d' % (i + 1) for i in range(8))
            + REWRITER + ';' + rest)
    yield '52-lb-pool-rewriter-10kflows', Configuration(
        replay('f10k', path, pool), 0.5, 1.5)
    outputs = ' '.join(
        'h[%d] -> StoreData(6, \\<02 00 00 00 00 %02x>) -> d;' % (i, i + 1)
        for i in range(4))
    yield '51-lb-hash-smac-10kflows', replay(
        'f10k', 'h :: HashSwitch(26, 12); ' + outputs)


def monitors():
    """Flow monitors and intrusion detection."""
    path = CHECK + ' -> AggregateIPFlows -> AggregateCounter'
    yield '60-flowmon-10kflows', Configuration(
        replay('f10k', path), 0.5, 1.5)
    exporter = 'x :: IPFIXExporter; x[1] -> Discard;'
    yield '63-ipfix-10kflows', Configuration(
        replay('f10k', CHECK + ' -> x', exporter), 0.5, 1.5)
    yield '61-averagecounter', endless('AverageCounter')
    yield '62-flowmon-1mflows', Configuration(replay('f1m', path), 7, 10)
    yield '65-ids-classifier-literal', endless(
        CHECK + ' -> cl :: Classifier(28/47455420, 28/504f5354, '
        '32/2f6574632f706173, -); cl[0] -> Discard; cl[1] -> Discard; '
        'cl[2] -> Discard; cl[3] -> d;')
    path = ('Strip(42) -> r :: RegexClassifier("attack[0-9]+", "."); '
            'r[0] -> d; r[1] -> d;')
    yield '68-ids-regex-64', endless(path)
    yield '69-ids-regex-1500', replay('f1_1500', path)


def sessions(count=1024):
    """Return a PPPoE server, which only ours has, with open sessions."""
    names = [('u%d' % number, '100.64.%d.%d' % divmod(number, 256))
             for number in range(count)]
    users = ', '.join(' '.join(user) for user in names)
    open_ones = ''.join(
        '\n%d %s %s %s 1 1492 0 0 0 0 0 0 0'
        % (number, traces.SOURCE_MAC.hex('-'), name, address)
        for number, (name, address) in enumerate(names, 1))
    return ('s :: PPPoEServer(%s, 192.0.2.1, %s, ECHO 0); s[0] -> Discard;\n'
            'Idle -> [1]s; Script(write s.state pppoe 1%s);'
            % (traces.DESTINATION_MAC.hex(':'), users, open_ones))


def tunnels():
    """Access concentrator, tunnels, encryption, Ethernet switch."""
    yield '70-bras-decap', replay(
        'pppoe1k', 'c :: Classifier(12/8864 20/0021, 12/8863, -); '
        'c[1] -> Discard; c[2] -> Discard; c[0] -> Strip(22) -> '
        'CheckIPHeader -> rt :: RadixIPLookup(0.0.0.0/0 18.26.4.1 0) -> '
        'DecIPTTL -> EtherEncap(0x0800, %s) -> d;' % MACS)
    yield '71-encap-udp-tunnel', endless(
        'UDPIPEncap(192.0.2.1, 4789, 192.0.2.2, 4789) -> '
        'EtherEncap(0x0800, %s)' % MACS)
    keys = ('\\<ABCDEFFF001DEFD2354550FE40CD708E> '
            '\\<112233EE556677888877665544332211>')
    yield '72-ipsec-esp-aes-sha1', replay(
        'f1', CHECK + ' -> rt; rt[1] -> IPsecESPEncap() -> '
        'IPsecAuthHMACSHA1(0) -> IPsecAES(1) -> IPsecEncap(50) -> d;',
        'rt :: RadixIPsecLookup(18.26.4.24/32 0, 2.0.0.0/8 18.26.4.1 1 234 '
        '%s 300 64); rt[0] -> Discard;' % keys)
    yield '73-pppoe-server-1k', replay('pppoe1k', '[0]s[1]', sessions())
    yield '80-etherswitch-1kmacs', replay(
        'mac1k', '[0]sw[1]', 'sw :: EtherSwitch; sw[0] -> Discard; '
        'FromDump(traces/mac1k_rev.pcap, STOP false) -> [1]sw;')


def all_of_them():
    """Return all configurations by name."""
    groups = (sources, lookups, routers, filters, rewriters, monitors,
              tunnels)
    found = {}
    for group in groups:
        for name, made in group():
            if isinstance(made, str):
                made = Configuration(made)
            found[name] = made
    return found

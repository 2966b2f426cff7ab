# SPDX-License-Identifier: Apache-2.0
"""An IP router of two interfaces that does all a router has to do."""

import collections

Interface = collections.namedtuple('Interface', 'ip mac network')
INTERFACES = (
    Interface('18.26.4.24', '00:00:C0:AE:67:EF', '18.26.7.0/24'),
    Interface('18.26.7.1', '00:00:C0:4F:71:EF', None),
)
NEXT_HOP_MAC = '00:00:c0:4f:71:ef'
OWN = ('18.26.4.24/32 0', '18.26.4.255/32 0', '18.26.4.0/32 0',
       '18.26.7.1/32 0', '18.26.7.255/32 0', '18.26.7.0/32 0',
       '18.26.4.0/24 1', '18.26.7.0/24 2')


def text(table, routes):
    """Return a router; packets come in at c0 and c1 and go out at d."""
    parts = ['tol :: Discard;\n']
    parts.extend(link(n, i) for n, i in enumerate(INTERFACES))
    parts.append(
        'at :: Tee(3); c0[1] -> at; c1[1] -> at; at[0] -> tol; '
        'at[1] -> arpq0; at[2] -> arpq1;\n'
        'rt :: %s(%s);\n' % (table, ', '.join(OWN + tuple(routes))))
    parts.append(
        'ip :: Strip(14) -> CheckIPHeader(INTERFACES 18.26.4.1/24 '
        '18.26.7.1/24) -> [0]rt;\n'
        'c0[2] -> Paint(1) -> ip; c1[2] -> Paint(2) -> ip;\n'
        'rt[0] -> EtherEncap(0x0800, 1:1:1:1:1:1, 2:2:2:2:2:2) -> tol;\n'
        'Idle -> c0;\n')
    parts.extend(forwarding(n, i) for n, i in enumerate(INTERFACES))
    return ''.join(parts)


def link(number, interface):
    """Return classifier, ARP and output queue of an interface."""
    answers = '%s %s' % (interface.ip, interface.mac)
    if interface.network:
        answers += ', %s %s' % (interface.network, interface.mac)
    lines = (
        'c{n} :: Classifier(12/0806 20/0001, 12/0806 20/0002, 12/0800, -);',
        'out{n} :: Queue(1024) -> Unqueue(BURST 32) -> d;',
        'arpq{n} :: EtherEncap(0x0800, {mac}, %s);' % NEXT_HOP_MAC,
        'c{n}[0] -> ARPResponder({answers}) -> out{n};',
        'c{n}[3] -> Discard;',
        'arpq{n} -> out{n};')
    return '\n'.join(lines).format(
        n=number, mac=interface.mac, answers=answers) + '\n'


def forwarding(number, interface):
    """Return the path from the lookup to an interface, and its errors."""
    path = (
        'rt[{o}] -> DropBroadcasts -> cp{o} :: PaintTee({o})'
        ' -> gio{o} :: IPGWOptions({ip}) -> FixIPSrc({ip})'
        ' -> dt{o} :: DecIPTTL -> fr{o} :: IPFragmenter(1500) -> arpq{n};\n'
        'dt{o}[1] -> ICMPError({ip}, timeexceeded) -> [0]rt;\n'
        'fr{o}[1] -> ICMPError({ip}, unreachable, needfrag) -> [0]rt;\n'
        'gio{o}[1] -> ICMPError({ip}, parameterproblem) -> [0]rt;\n'
        'cp{o}[1] -> ICMPError({ip}, redirect, host) -> [0]rt;\n')
    return path.format(n=number, o=number + 1, ip=interface.ip)

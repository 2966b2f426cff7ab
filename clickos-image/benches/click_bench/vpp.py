# SPDX-License-Identifier: Apache-2.0
"""The rows of tables in the language of VPP, which is their peer.

The traces are pcap files, which VPP's packet generator sends as they are.
``vppctl exec FILE.vpp`` makes interfaces and routes and starts to send.
"""

import ipaddress

from click_bench import traces

HEAD = """create packet-generator interface pg0
create packet-generator interface pg1
set interface state pg0 up
set interface state pg1 up
set interface ip address pg1 192.0.2.254/24
set interface ip address pg1 fe80::ffff/64
set interface mac address pg0 00:00:c0:4f:71:ef
"""
TAIL = """packet-generator new { name bench pcap %s limit -1 \
node ethernet-input interface pg0 }
packet-generator enable-stream bench
"""
#: The routes of each row: how many, their lengths, bits, seed, trace.
ROWS = {
    'e0-radix-60000': (60_000, traces.BGP_LENGTHS, 32, 60, 'dstany'),
    'e1-ip6-1000': (1000, traces.BGP6_LENGTHS, 128, 61, 'dst6'),
    'e8-bgp-1m': (1_000_000, traces.BGP_LENGTHS, 32, 60, 'dstany'),
    'e9-bgp6-200k': (200_000, traces.BGP6_LENGTHS, 128, 61, 'dst6'),
}


def script(name):
    """Return what makes VPP do the work of a row."""
    count, lengths, bits, seed, trace = ROWS[name]
    address, via = ((ipaddress.IPv4Address, '192.0.2.%d') if bits == 32
                    else (ipaddress.IPv6Address, 'fe80::%x'))
    routes = ['ip route add %s/%d via %s pg1' % (
        address(network), length, via % (i % 250 + 1))
        for i, (network, length) in enumerate(
            traces.prefixes(count, lengths, bits, seed))]
    return HEAD + '\n'.join(routes) + '\n' + TAIL % (
        'traces/%s.pcap' % trace)


def write(folder, names):
    """Write the scripts of those rows that have one."""
    for name in names:
        if name in ROWS:
            (folder / (name + '.vpp')).write_text(script(name))

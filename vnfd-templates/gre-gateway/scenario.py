# SPDX-License-Identifier: Apache-2.0
"""The GRE gateway with a TUN device and socat as its peer.

A TUN device puts two bytes of flags and the protocol in front of a packet.
For IPv4 they are a GRE header (RFC 2784). socat sends them as IP protocol 47.
"""

INNER = '10.8.0.1'
PROPERTIES = {'peer': '10.9.2.9', 'remote': '10.8.0.0/24'}


def check(case, vnf):
    _start_peer(vnf)
    # Of IPv4: the peer's device solicits routers of IPv6 by itself.
    capture = vnf.capture('right', 'ip proto 47 and ip[22:2] = 0x0800', 1)
    case.assertEqual(5, vnf.ping('left', INNER))
    text = vnf.wait(capture)
    case.assertIn('GREv0', text)
    case.assertIn(f'{vnf.address("left")} > {INNER}: ICMP echo request', text)
    vnf.serve_http('right', 80)
    vnf.run('left', 'curl', '-sf', f'http://{INNER}/')
    vnf.swap()
    case.assertEqual(5, vnf.ping('left', INNER))
    _check_sizes(case, vnf)
    _check_others(case, vnf)


def _start_peer(vnf):
    vnf.start('right', 'socat', 'TUN:10.8.0.1/24,iff-up,tun-name=tunnel',
              f'IP4-SENDTO:{vnf.address("vif1")}:47')
    vnf.until(lambda: INNER in vnf.run('right', 'ip', '-4', 'address'),
              'socat makes no TUN device')
    vnf.run('right', 'ip', 'link', 'set', 'tunnel', 'mtu', 1476)
    vnf.run('right', 'ip', 'route', 'add', f'{vnf.address("left")}/32', 'dev',
            'tunnel')


def _check_sizes(case, vnf):
    """1,476 bytes fit; more are fragmented, or refused with DF."""
    case.assertEqual(3, vnf.ping('left', INNER, 3, '-s', 1448, '-M', 'do'))
    case.assertIn('mtu = 1476', vnf.printed(
        'left', 'ping', '-c', 1, '-W', 20, '-s', 1472, '-M', 'do', INNER))
    case.assertEqual(1, vnf.count('errors.count'))


def _check_others(case, vnf):
    """Packets between other addresses do not leave the tunnel."""
    other = vnf.count('other.count')
    vnf.add_address('right', '10.8.1.1/32')
    case.assertTrue(vnf.silent('right', vnf.address('left'), '-I',
                               '10.8.1.1'))
    vnf.until(lambda: vnf.count('other.count') == other + 1,
              'the packet is not counted')

# SPDX-License-Identifier: Apache-2.0
"""The BRAS with scapy's PPPoE as subscribers, and curl, iperf3, tcpdump."""

import os
import re
import sys

from clickos_lab.vnf import pppoe_peer

DNS = '10.9.2.53'
MBIT = 125000
RATES = {'down': 8 * MBIT, 'up': 4 * MBIT}
AMY, BOB = '10.9.2.100', '10.9.2.101'
PROPERTIES = {
    'subscribers': '10.9.2.96/27', 'subscribers6': '2001:db8:9::/56',
    'login': 'ANY', 'dns': DNS,
    'users': [{'name': 'amy', 'address': AMY},
              {'name': 'bob@example.net', 'address': BOB, **RATES}]}
#: Two seconds of a rate, what may pass at once, and headers that iperf3
#: does not count.
MOST, LEAST = 1.2, 0.3


def check(case, vnf):
    vnf.control.write('server.passwords', 'amy one, bob@example.net two')
    server = vnf.address('right')
    vnf.serve_http('right', 80)
    capture = vnf.capture('left', 'pppoes and ip', 2)
    amy = _dial(vnf, 'amy', 'one')
    case.assertIn(f'up {AMY} dns {DNS} session ', amy.stdout.readline())
    case.assertEqual(5, vnf.ping('left', server))
    case.assertIn(f'{AMY} > {server}: ICMP echo request', vnf.wait(capture))
    _check_page(case, vnf, server)
    _check_sizes(case, vnf, server)
    _check_account(case, vnf)
    _check_spoofed(case, vnf, server)
    vnf.swap()
    case.assertIsNone(amy.poll(), 'the swap lost the session')
    case.assertEqual(5, vnf.ping('left', server))
    case.assertEqual(5, vnf.ping('right', AMY))
    _check_strangers(case, vnf)
    vnf.control.write('server.disconnect', 'amy')
    case.assertIn('the session is over', vnf.wait(amy))
    case.assertIn(' disconnected', vnf.control.read('server.ended'))
    _check_rates(case, vnf, server)


def _dial(vnf, name, password, *more):
    device = f'{name[:3]}{os.getpid()}'
    return vnf.start('left', sys.executable, pppoe_peer.__file__, device,
                     name, password, *more)


def _check_page(case, vnf, server):
    page = vnf.run('left', 'curl', '-sf', f'http://{server}/')
    case.assertEqual(vnf.run('right', 'curl', '-sf', f'http://{server}/'),
                     page)


def _check_sizes(case, vnf, server):
    """1,492 bytes fit; more come in fragments, or are refused with DF."""
    case.assertEqual(3, vnf.ping('left', server, 3, '-s', 1464, '-M', 'do'))
    case.assertEqual(3, vnf.ping('right', AMY, 3, '-s', 1472,
                                 '-M', 'dont'))
    case.assertIn('mtu = 1492', vnf.printed(
        'right', 'ping', '-c', 1, '-W', 20, '-s', 1472, '-M', 'do', AMY))


def _check_account(case, vnf):
    """The account has a ping's bytes, both ways."""
    before = _account(vnf)
    case.assertEqual(1, vnf.ping('right', AMY, 1, '-s', 72))
    case.assertEqual([1, 100, 0, 1, 100, 0],
                     [b - a for a, b in zip(before, _account(vnf))])


def _account(vnf):
    (line,) = vnf.control.read('server.sessions').splitlines()
    return [int(word) for word in line.split()[5:]]


def _check_spoofed(case, vnf, server):
    """A subscriber cannot send with another one's address."""
    before = vnf.count('server.spoofed')
    vnf.run('left', 'ip', 'address', 'add', f'{BOB}/32', 'dev', 'lo')
    case.assertTrue(vnf.silent('left', server, '-I', BOB))
    vnf.run('left', 'ip', 'address', 'del', f'{BOB}/32', 'dev', 'lo')
    case.assertGreater(vnf.count('server.spoofed'), before)


def _check_strangers(case, vnf):
    """Wrong passwords and unknown names get nothing."""
    before = vnf.count('server.rejected')
    for words in (('amy', 'two'), ('eve', 'one'), ('amy', 'two', 'pap')):
        case.assertIn('login incorrect', vnf.wait(_dial(vnf, *words)))
    case.assertEqual(before + 3, vnf.count('server.rejected'))
    case.assertEqual(1, vnf.count('server.count'))


def _check_rates(case, vnf, server):
    """A user of PAP has its rates in both directions."""
    bob = _dial(vnf, 'bob@example.net', 'two', 'pap')
    case.assertTrue(re.match(f'up {BOB} ', bob.stdout.readline()))
    vnf.serve('right', 5201, 'iperf3', '-s')
    for rate, options in ((RATES['up'], ()), (RATES['down'], ('-R',))):
        end = vnf.iperf3('left', '-c', server, '-t', 2, *options)
        seen = end['sum_received']['bits_per_second'] / 8
        case.assertLess(LEAST * rate, seen)
        case.assertLess(seen, MOST * rate)
    case.assertGreater(sum(_account(vnf)[2::3]), 0, 'nothing was dropped')

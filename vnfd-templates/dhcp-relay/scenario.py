# SPDX-License-Identifier: Apache-2.0
"""The DHCP relay with udhcpc and dhclient as clients.

dnsmasq serves both versions, and a dead server is in front of it.
"""

DEAD, SERVER = '10.9.2.29', '10.9.2.9'
_LINK_LOCAL, _SERVER6 = 'fe80::9/64', '2001:db8:2::9/64'
_ENTERPRISE = 32473
#: What tcpdump prints of them.
_IDS = f'interface-ID {b"left".hex()}', \
    f'Remote-ID {_ENTERPRISE} {b"host-a".hex()}'
PROPERTIES = {'server': DEAD, 'more_servers': [SERVER],
              'circuit_id': 'port 7', 'remote_id': 'host-a',
              'enterprise': _ENTERPRISE}


def _lease(vnf):
    """Ask for a lease; return what the client prints."""
    return vnf.printed('left', 'udhcpc', '-f', '-q', '-n', '-t', '5', '-T',
                       '5', '-i', 'eth0', '-s', '/bin/true')


def _lease6(vnf):
    """Let a client ask for a lease of IPv6 until it has one; return it."""
    file = vnf.folder / 'leases6'
    file.unlink(missing_ok=True)
    client = vnf.start('left', 'dhclient', '-6', '-1', '-d', '-sf',
                       '/bin/true', '-lf', file, '-pf',
                       f'{vnf.folder}/dhclient.pid', 'eth0')
    vnf.until(lambda: file.exists() and 'iaaddr' in file.read_text(),
              'no lease of IPv6')
    vnf.stop(client)
    return file.read_text()


def _add6(vnf, host, address):
    vnf.run(host, 'ip', 'address', 'add', address, 'dev', 'eth0', 'nodad')


def check(case, vnf):
    _check4(case, vnf)
    _check6(case, vnf)


def _check6(case, vnf):
    _add6(vnf, 'left', _LINK_LOCAL)
    _add6(vnf, 'right', _SERVER6)
    vnf.serve('right', 547, 'dnsmasq', '--no-daemon', '--port=0',
              '--user=root',
              '--dhcp-range=2001:db8:1::100,2001:db8:1::1ff,64,10m',
              f'--dhcp-leasefile={vnf.folder}/leases6.server', '--pid-file',
              udp=True)
    capture = vnf.capture('right', 'udp src port 547 and dst ff05::1:3', 1)
    lease = r'iaaddr 2001:db8:1::1[0-9a-f]{2} '
    case.assertRegex(_lease6(vnf), lease)
    text = vnf.wait(capture)
    for words in _IDS:
        case.assertIn(words, text.replace('...', ''))
    asked = vnf.count('relay6.requests')
    case.assertEqual(asked, vnf.count('relay6.answers'))
    vnf.swap()
    case.assertRegex(_lease6(vnf), lease)
    case.assertGreater(vnf.count('relay6.answers'), asked)


def _check4(case, vnf):
    vnf.run('right', 'ip', 'route', 'add', f'{vnf.address("vif0")}/32', 'via',
            vnf.address('vif1'))
    # the server has leases for the circuit alone
    vnf.serve('right', 67, 'dnsmasq', '--no-daemon', '--port=0', '--user=root',
              '--dhcp-circuitid=set:seventh,port 7',
              '--dhcp-ignore=tag:!seventh',
              '--dhcp-range=10.9.1.100,10.9.1.150,255.255.255.0,2m',
              '--no-ping', f'--dhcp-leasefile={vnf.folder}/leases',
              '--pid-file', udp=True)
    text = _lease(vnf)
    case.assertRegex(text, r'10\.9\.1\.1\d\d obtained from 10\.9\.2\.9')
    vnf.until(lambda: vnf.count('answers.count') >=
              vnf.count('requests.count'), 'a request has no answer')
    vnf.swap()
    case.assertIn('obtained', _lease(vnf))
    vnf.control.write('relay.circuit', 'port 8')
    case.assertNotIn('obtained', _lease(vnf), 'another circuit')

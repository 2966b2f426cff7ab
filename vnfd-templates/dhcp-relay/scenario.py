# SPDX-License-Identifier: Apache-2.0
"""The DHCP relay with udhcpc as client, dnsmasq and a dead one as servers."""

DEAD, SERVER = '10.9.2.29', '10.9.2.9'
PROPERTIES = {'server': DEAD, 'more_servers': [SERVER],
              'circuit_id': 'port 7', 'remote_id': 'host-a'}


def _lease(vnf):
    """Ask for a lease; return what the client prints."""
    return vnf.printed('left', 'udhcpc', '-f', '-q', '-n', '-t', '5', '-T',
                       '5', '-i', 'eth0', '-s', '/bin/true')


def check(case, vnf):
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

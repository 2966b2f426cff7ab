# SPDX-License-Identifier: Apache-2.0
"""The router with ping, curl and the kernel's ICMP as judges."""

NETWORKS = 1000
LEFT6, RIGHT6, FAR6 = '2001:db8:1::', '2001:db8:2::', '2001:db8:f::'


def _far(number):
    return f'10.{100 + number // 250}.{number % 250}'


def _errors(vnf, *words):
    """Return what ping prints about errors."""
    return vnf.printed('left', 'ping', '-n', '-c', 1, '-W', 20, *words)


def check(case, vnf):
    server, near = vnf.address('right'), vnf.address('vif0')
    case.assertEqual(5, vnf.ping('left', server))
    case.assertEqual(1, vnf.ping('left', vnf.address('vif1'), 1))
    vnf.serve_http('right', 80)
    vnf.run('left', 'curl', '-sf', f'http://{server}/')
    case.assertIn(f'From {near} icmp_seq=1 Time to live exceeded',
                  _errors(vnf, '-t', 1, server))
    case.assertIn(f'From {near} icmp_seq=1 Destination Net Unreachable',
                  _errors(vnf, '10.250.0.1'))
    vnf.swap()
    case.assertEqual(5, vnf.ping('left', server))
    _check_routes(case, vnf, server)
    _check_ip6(case, vnf)


def _check_routes(case, vnf, server):
    """Write a thousand routes beyond right; some networks are real ones."""
    vnf.control.write('routes.extra', ', '.join(
        f'{_far(number)}.0/24 {server} 2' for number in range(NETWORKS)))
    case.assertEqual(NETWORKS + 5,
                     len(vnf.control.read('routes.table').splitlines()))
    for number in (0, 499, NETWORKS - 1):
        vnf.add_address('right', f'{_far(number)}.1/32')
        case.assertEqual(2, vnf.ping('left', f'{_far(number)}.1', 2))


def _check_ip6(case, vnf):
    for host, network in (('left', LEFT6), ('right', RIGHT6)):
        vnf.run(host, 'ip', 'address', 'add', f'{network}9/64', 'dev', 'eth0',
                'nodad')
        vnf.run(host, 'ip', 'route', 'add', 'default', 'via', f'{network}1')
    server, near = f'{RIGHT6}9', f'{LEFT6}1'
    case.assertEqual(5, vnf.ping('left', server))
    case.assertEqual(1, vnf.ping('left', near, 1))
    case.assertEqual(1, vnf.ping('left', f'{RIGHT6}1', 1))
    vnf.run('left', 'curl', '-sgf', f'http://[{server}]/')
    case.assertIn(f'From {near} icmp_seq=1 Time exceeded: Hop limit',
                  _errors(vnf, '-t', 1, server))
    case.assertIn(f'From {near} icmp_seq=1 Destination unreachable: No route',
                  _errors(vnf, f'{FAR6}1'))
    vnf.control.write('routes6.add', f'{FAR6}/64 {server} 2')
    vnf.run('right', 'ip', 'address', 'add', f'{FAR6}1/128', 'dev', 'eth0',
            'nodad')
    case.assertEqual(2, vnf.ping('left', f'{FAR6}1', 2))

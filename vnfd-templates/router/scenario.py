# SPDX-License-Identifier: Apache-2.0
"""The router with ping, curl and the kernel's ICMP as judges."""

NETWORKS = 1000


def _far(number):
    return f'10.{100 + number // 250}.{number % 250}'


def _errors(vnf, *words):
    """Return what ping prints about errors."""
    return vnf.printed('left', 'ping', '-n', '-c', 1, '-W', 1, *words)


def check(case, vnf):
    server, near = vnf.address('right'), vnf.address('vif0')
    case.assertEqual(5, vnf.ping('left', server))
    case.assertEqual(1, vnf.ping('left', vnf.address('vif1'), 1))
    vnf.serve('right', 80, 'python3', '-m', 'http.server', 80)
    vnf.run('left', 'curl', '-sf', f'http://{server}/')
    case.assertIn(f'From {near} icmp_seq=1 Time to live exceeded',
                  _errors(vnf, '-t', 1, server))
    case.assertIn(f'From {near} icmp_seq=1 Destination Net Unreachable',
                  _errors(vnf, '10.250.0.1'))
    vnf.swap()
    case.assertEqual(5, vnf.ping('left', server))
    _check_routes(case, vnf, server)


def _check_routes(case, vnf, server):
    """Add a thousand routes beyond right; some networks are real ones."""
    vnf.control.write('routes.ctrl', ''.join(
        f'add {_far(number)}.0/24 {server} 2\n' for number in range(NETWORKS)))
    case.assertEqual(NETWORKS + 5,
                     len(vnf.control.read('routes.table').splitlines()))
    for number in (0, 499, NETWORKS - 1):
        vnf.add_address('right', f'{_far(number)}.1/32')
        case.assertEqual(2, vnf.ping('left', f'{_far(number)}.1', 2))

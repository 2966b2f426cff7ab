# SPDX-License-Identifier: Apache-2.0
"""The stateful firewall with ping and curl as judges."""

PROPERTIES = {'rules': ['deny tcp dst port 81', 'allow all']}


def _curl(host, port):
    return 'curl', '-sf', f'http://{host}:{port}/'


def check(case, vnf):
    left, right = vnf.address('left'), vnf.address('right')
    for port in (80, 81):
        vnf.serve_http('right', port)
    vnf.serve_http('left', 80)
    vnf.run('left', *_curl(right, 80))
    short = ('--max-time', '1')
    case.assertTrue(vnf.fails('left', *_curl(right, 81), *short), 'denied')
    case.assertTrue(vnf.fails('right', *_curl(left, 80), *short), 'no flow')
    case.assertEqual(5, vnf.ping('left', right))
    case.assertTrue(vnf.silent('right', left))
    _check_swap(case, vnf, right)


def _check_swap(case, vnf, server):
    """A connection that is open passes on."""
    vnf.serve('right', 5201, 'iperf3', '-s', '-1')
    client = vnf.start('left', 'iperf3', '-c', server, '-t', '2', '-b', '20M')
    vnf.until(lambda: vnf.count('flows.table_size') >= 3, 'no flow opens')
    vnf.swap()
    case.assertIn('iperf Done', vnf.wait(client))

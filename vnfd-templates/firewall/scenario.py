# SPDX-License-Identifier: Apache-2.0
"""The firewall with ping, curl and traceroute's errors as judges."""

PROPERTIES = {'rules': ['allow icmp', 'deny tcp dst port 81', 'allow tcp']}


def check(case, vnf):
    server = vnf.address('right')
    for port in (80, 81):
        vnf.serve('right', port, 'python3', '-m', 'http.server', port)
    case.assertEqual(5, vnf.ping('left', server))
    vnf.run('left', 'curl', '-sf', f'http://{server}:80/')
    curl_81 = ('curl', '-sf', '--max-time', '0.5', f'http://{server}:81/')
    case.assertTrue(vnf.fails('left', *curl_81))
    expired = vnf.count('expired.count')
    case.assertEqual(0, vnf.ping('left', server, 1, '-t', '1'))
    case.assertEqual(expired + 1, vnf.count('expired.count'))
    vnf.swap()
    vnf.control.write('fw.config', 'allow all')
    case.assertFalse(vnf.fails('left', *curl_81))

# SPDX-License-Identifier: Apache-2.0
"""The firewall with ping, curl and traceroute's errors as judges."""

PROPERTIES = {'rules': ['allow icmp', 'deny tcp dst port 81', 'allow tcp']}


def check(case, vnf):
    server = vnf.address('right')
    for port in (80, 81):
        vnf.serve_http('right', port)
    case.assertEqual(5, vnf.ping('left', server))
    vnf.run('left', 'curl', '-sf', f'http://{server}:80/')
    curl_81 = ('curl', '-sf', f'http://{server}:81/')
    case.assertTrue(vnf.fails('left', *curl_81, '--max-time', '1'))
    expired = vnf.count('expired.count')
    case.assertTrue(vnf.silent('left', server, '-t', '1'))
    vnf.until(lambda: vnf.count('expired.count') == expired + 1,
              'no packet expires')
    vnf.swap()
    vnf.control.write('fw.config', 'allow all')
    vnf.run('left', *curl_81)

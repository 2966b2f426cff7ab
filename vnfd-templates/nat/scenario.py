# SPDX-License-Identifier: Apache-2.0
"""NAT with ping, curl, iperf3 and tcpdump as judges."""

import re

PUBLIC = '10.9.2.64'
PROPERTIES = {'public': PUBLIC, 'ports': '20000-20399'}


def check(case, vnf):
    server = vnf.address('right')
    vnf.serve_http('right', 80)
    capture = vnf.capture('right', 'tcp[13] == 2', 1)
    vnf.run('left', 'curl', '-sf', f'http://{server}/')
    text = vnf.wait(capture)
    port = re.search(rf'{PUBLIC}\.(\d+) > {server}\.80', text)
    # The first of four guests has the first quarter.
    case.assertTrue(port and 20000 <= int(port[1]) <= 20099, text)
    case.assertEqual(5, vnf.ping('left', server))
    case.assertEqual(1, vnf.ping('left', vnf.address('vif0'), 1))
    case.assertTrue(vnf.silent('right', vnf.address('left')))
    _check_swap(case, vnf, server)


def _check_swap(case, vnf, server):
    """A connection keeps its port."""
    vnf.serve('right', 5201, 'iperf3', '-s', '-1')
    client = vnf.start('left', 'iperf3', '-c', server, '-t', '2', '-b', '20M')
    vnf.until(lambda: vnf.count('flows.table_size') >= 3, 'no flow opens')
    vnf.swap()
    case.assertIn('iperf Done', vnf.wait(client))

# SPDX-License-Identifier: Apache-2.0
"""NAT with ping, curl, iperf3 and tcpdump as judges."""

import re

PROPERTIES = {'first_port': 20000, 'last_port': 20099}


def check(case, vnf):
    server, public = vnf.address('right'), vnf.address('vif1')
    vnf.serve_http('right', 80)
    capture = vnf.capture('right', 'tcp[13] == 2', 1)
    vnf.run('left', 'curl', '-sf', f'http://{server}/')
    text = vnf.wait(capture)
    port = re.search(rf'{public}\.(\d+) > {server}\.80', text)
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

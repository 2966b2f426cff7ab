# SPDX-License-Identifier: Apache-2.0
"""The flow monitor with iperf3 and ping as judges."""

SHARED_NETWORK = True
PROPERTIES = {'threshold': 50}


def check(case, vnf):
    server = vnf.address('right')
    case.assertEqual(5, vnf.ping('left', server))
    vnf.serve('right', 5201, 'iperf3', '-s')
    vnf.run('left', 'iperf3', '-c', server, '-u', '-b', '8M', '-l', '1000',
            '-t', '1')
    # one TCP flow for control, one UDP flow with the data
    case.assertEqual(2, vnf.count('packets.nagg'))
    case.assertGreaterEqual(vnf.count('packets.count'), 1000)
    case.assertIn('10.9.1.9', vnf.control.read('rates.look'))
    case.assertEqual(10, vnf.count('other.count'), 'ten pings and answers')
    flows = vnf.count('flows.size')
    vnf.swap()
    case.assertEqual(flows, vnf.count('flows.size'))
    case.assertEqual(5, vnf.ping('left', server))

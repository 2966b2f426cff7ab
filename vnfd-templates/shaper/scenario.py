# SPDX-License-Identifier: Apache-2.0
"""The shaper with iperf3 as judge."""

import json

SHARED_NETWORK = True
MBIT = 125000
PROPERTIES = {'to_right': 8 * MBIT, 'to_left': 80 * MBIT}


def _rate(vnf, seconds, *more):
    """Return what a TCP connection carries, in bytes a second."""
    text = vnf.run('left', 'iperf3', '-J', '-c', vnf.address('right'),
                   '-t', seconds, *more)
    return json.loads(text)['end']['sum_received']['bits_per_second'] / 8


def check(case, vnf):
    vnf.serve('right', 5201, 'iperf3', '-s')
    # the rate counts frames, iperf3 what is in them; a second's burst is
    # allowed at the start
    case.assertLess(_rate(vnf, 2), 17 * MBIT)
    case.assertGreater(_rate(vnf, 2, '-R'), 20 * MBIT)
    vnf.control.write('to_right.rate', str(80 * MBIT))
    vnf.swap()
    vnf.control.write('to_right.rate', str(80 * MBIT))
    case.assertGreater(_rate(vnf, 2), 20 * MBIT)
    case.assertEqual(5, vnf.ping('left', vnf.address('right')))

# SPDX-License-Identifier: Apache-2.0
"""The shaper with iperf3 as judge."""

import json

SHARED_NETWORK = True
MBIT = 125000
PROPERTIES = {'to_right': 8 * MBIT, 'to_left': 80 * MBIT,
              'expedited_to_right': MBIT}
EXPEDITED, LOWER_EFFORT = 0xb8, 0x20


def _words(vnf, *more, port=5201):
    return ('iperf3', '-J', '-c', vnf.address('right'), '-p', port, '-t', 2,
            *more)


def _bytes_s(text):
    """Return what a TCP connection carries, in bytes a second."""
    return json.loads(text)['end']['sum_received']['bits_per_second'] / 8


def _rate(vnf, *more):
    return _bytes_s(vnf.run('left', *_words(vnf, *more)))


def check(case, vnf):
    for port in (5201, 5202):
        vnf.serve('right', port, 'iperf3', '-s', '-p', port)
    # the rate counts frames, iperf3 what is in them; a second's burst is
    # allowed at the start
    case.assertLess(_rate(vnf), 17 * MBIT)
    case.assertGreater(_rate(vnf, '-R'), 20 * MBIT)
    case.assertLess(_rate(vnf, '-S', EXPEDITED), 2 * MBIT)
    _check_weights(case, vnf)
    vnf.control.write('to_right.rate', str(80 * MBIT))
    vnf.swap()
    vnf.control.write('to_right.rate', str(80 * MBIT))
    case.assertGreater(_rate(vnf), 20 * MBIT)
    case.assertEqual(5, vnf.ping('left', vnf.address('right')))


def _check_weights(case, vnf):
    """Lower effort leaves most of the rate to what comes beside it."""
    lower = vnf.start('left', *_words(vnf, '-S', LOWER_EFFORT, port=5202))
    standard = _rate(vnf)
    case.assertGreater(standard, 2 * _bytes_s(lower.communicate()[0]))

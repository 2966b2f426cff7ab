# SPDX-License-Identifier: Apache-2.0
"""The shaper with iperf3 as judge."""

SHARED_NETWORK = True
#: A megabit, in bytes: an emulated host carries some of them.
RATE = 125000
PROPERTIES = {'to_right': RATE, 'to_left': 20 * RATE,
              'expedited_to_right': RATE // 8}
EXPEDITED, LOWER_EFFORT = 0xb8, 0x20
#: The rate counts frames, iperf3 what is in them; within two seconds a
#: second's burst comes on top.
MOST = 2.1


def _words(vnf, *more, port=5201, seconds=2):
    return '-c', vnf.address('right'), '-p', port, '-t', seconds, *more


def _rate(vnf, *more):
    """Return what a TCP connection carries, in bytes a second."""
    end = vnf.iperf3('left', *_words(vnf, *more))
    return end['sum_received']['bits_per_second'] / 8


def check(case, vnf):
    for port in (5201, 5202):
        vnf.serve('right', port, 'iperf3', '-s', '-p', port)
    case.assertLess(_rate(vnf), MOST * RATE)
    case.assertGreater(_rate(vnf, '-R'), MOST * RATE)
    case.assertLess(_rate(vnf, '-S', EXPEDITED), MOST * RATE / 8)
    _check_weights(case, vnf)
    vnf.swap()
    case.assertLess(_rate(vnf), MOST * RATE)
    case.assertGreater(_rate(vnf, '-R'), MOST * RATE)
    case.assertEqual(5, vnf.ping('left', vnf.address('right')))


def _check_weights(case, vnf):
    """Lower effort leaves most of the rate to other traffic."""
    lower = vnf.start('left', 'iperf3', *_words(
        vnf, '-S', LOWER_EFFORT, port=5202, seconds=60))
    vnf.until(lambda: _waiting(vnf), 'nothing of lower effort waits')
    case.assertGreater(_rate(vnf), 0.6 * RATE)
    case.assertTrue(_waiting(vnf), 'nothing of lower effort waits')
    vnf.stop(lower)


def _waiting(vnf):
    """Return how many frames of lower effort wait in the shaper."""
    return sum(vnf.count(f'right_classes/lower/q{number}.length')
               for number in range(8))

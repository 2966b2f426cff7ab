# SPDX-License-Identifier: Apache-2.0
"""The wire with ping and curl as judges; both sides share a network."""

SHARED_NETWORK = True


def check(case, vnf):
    server = vnf.address('right')
    vnf.serve_http('right', 80)
    case.assertEqual(20, vnf.ping('left', server, 20))
    case.assertEqual(5, vnf.ping('left', server, 5, '-s', '1472', '-M', 'do'))
    vnf.run('left', 'curl', '-sf', f'http://{server}/')
    passed = vnf.count('to_right.count')
    vnf.swap()
    case.assertLessEqual(passed, vnf.count('to_right.count'))
    case.assertEqual(5, vnf.ping('left', server))

# SPDX-License-Identifier: Apache-2.0
"""The SYN-flood protection with hping3 as attacker and curl as judge."""

import time

SHARED_NETWORK = True
SOURCE_ATTEMPTS = 20
PROPERTIES = {'attempts': 60, 'source_attempts': SOURCE_ATTEMPTS}
ATTACKER = '10.9.1.77'
#: One client in each class of sources but the attacker's.
CLIENTS = [f'10.9.1.{number}' for number in range(101, 108)]


def check(case, vnf):
    server = vnf.address('right')
    vnf.serve_http('right', 80)
    for client in CLIENTS:
        vnf.add_address('left', f'{client}/24')
    # a browser's connections come together
    vnf.run('left', 'curl', '-sf', '--parallel', '--parallel-immediate',
            *[f'http://{server}/?{number}' for number in range(8)])
    case.assertEqual(0, vnf.count('dropped.count'))
    _flood(case, vnf, server)
    _clients(vnf, server)
    vnf.swap()
    _clients(vnf, server)
    case.assertEqual(0, vnf.count('limited.count'), 'one class takes all')


def _flood(case, vnf, server):
    """The attacker gets what its class may have, however fast it is."""
    before, start_s = vnf.count('passed.count'), time.monotonic()
    vnf.start('left', 'hping3', '-q', '-S', '-p', '80', '-i', 'u500', '-a',
              ATTACKER, server)
    vnf.until(lambda: vnf.count('dropped.count') > 1000, 'no flood')
    passed = vnf.count('passed.count') - before
    most = SOURCE_ATTEMPTS * (1 + time.monotonic() - start_s)
    case.assertLessEqual(passed, most)


def _clients(vnf, server):
    for client in CLIENTS:
        vnf.run('left', 'curl', '-sf', '--interface', client,
                f'http://{server}/')

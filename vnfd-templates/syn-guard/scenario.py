# SPDX-License-Identifier: Apache-2.0
"""The SYN-flood protection with hping3 as attacker and curl as judge."""

SHARED_NETWORK = True
PROPERTIES = {'attempts': 60, 'source_attempts': 20}


def check(case, vnf):
    server = vnf.address('right')
    vnf.serve('right', 80, 'python3', '-m', 'http.server', 80)
    vnf.run('left', 'curl', '-sf', f'http://{server}/')
    vnf.start('left', 'hping3', '-q', '-S', '-p', '80', '-i', 'u500', '-a',
              '10.9.1.77', server)
    vnf.until(lambda: vnf.count('attempts.count') > 2000, 'no flood')
    case.assertLess(vnf.count('passed.count'), 200)
    # ten clients: one may share the attacker's class
    _clients(case, vnf, server)
    vnf.swap()
    _clients(case, vnf, server)


def _clients(case, vnf, server):
    clients = [f'10.9.1.{100 + vnf.swaps * 10 + n}' for n in range(8)]
    for client in clients:
        vnf.add_address('left', f'{client}/24')
    served = [client for client in clients if not vnf.fails(
        'left', 'curl', '-sf', '--max-time', '3', '--interface', client,
        f'http://{server}/')]
    case.assertGreaterEqual(len(served), 4, served)

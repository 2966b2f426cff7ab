# SPDX-License-Identifier: Apache-2.0
"""The load balancer with socat as many clients."""

CLIENTS = 20
PROPERTIES = {'service_port': 8080,
              'server_1': '10.9.2.9', 'server_2': '10.9.2.19'}


def _serve(vnf, address):
    """Start a server that tells its address."""
    vnf.start('right', 'socat', f'TCP-LISTEN:8080,bind={address},fork',
              f'SYSTEM:echo {address}')
    vnf.until(lambda: f'{address}:8080' in vnf.run('right', 'ss', '-ltnH'),
              f'{address} does not listen')


def _answers(vnf, clients):
    """Return which server answers each client."""
    service = f'TCP:{vnf.address("vif0")}:8080,connect-timeout=2'
    return [vnf.run('left', 'socat', '-u', f'{service},bind={client}',
                    'STDOUT').strip() for client in clients]


def check(case, vnf):
    vnf.add_address('right', '10.9.2.19/24')
    clients = [f'10.9.1.{100 + number}' for number in range(CLIENTS)]
    for client in clients:
        vnf.add_address('left', f'{client}/24')
    for server in (PROPERTIES['server_1'], PROPERTIES['server_2']):
        _serve(vnf, server)
    first = _answers(vnf, clients)
    for server in (PROPERTIES['server_1'], PROPERTIES['server_2']):
        case.assertGreaterEqual(first.count(server), CLIENTS // 4, first)
    vnf.swap()
    case.assertEqual(first, _answers(vnf, clients), 'a client moved')
    case.assertEqual(3, vnf.ping('left', vnf.address('vif0'), 3))

# SPDX-License-Identifier: Apache-2.0
"""The load balancer with socat as many clients and three servers."""

CLIENTS = 20
SERVERS = ['10.9.2.9', '10.9.2.19', '10.9.2.29']
PROPERTIES = {'service_port': 8080, 'health_port': 8080, 'servers': SERVERS}


def _serve(vnf, address):
    """Start a server that answers a line with its address."""
    server = vnf.start('right', 'socat', f'TCP-LISTEN:8080,bind={address},'
                       'reuseaddr,fork', f'SYSTEM:read line; echo {address}')
    vnf.until(lambda: f'{address}:8080' in vnf.run('right', 'ss', '-ltnH'),
              f'{address} does not listen')
    return server


def _question(vnf, client, after_s=0):
    service = (f'TCP:{vnf.address("vif0")}:8080,connect-timeout=20,'
               f'bind={client}')
    return 'sh', '-c', f'(sleep {after_s}; echo) | socat -t 20 - {service}'


def _answers(vnf):
    """Return which server answers each client."""
    return [vnf.run('left', *_question(vnf, client)).strip()
            for client in _clients()]


def _clients():
    return [f'10.9.1.{100 + number}' for number in range(CLIENTS)]


def _until(vnf, address, state):
    vnf.until(lambda: f'{address} {state}' in vnf.control.read('pool.status'),
              f'{address} does not become {state}')


def check(case, vnf):
    for server in SERVERS[1:]:
        vnf.add_address('right', f'{server}/24')
    for client in _clients():
        vnf.add_address('left', f'{client}/24')
    processes = [_serve(vnf, server) for server in SERVERS]
    for server in SERVERS:
        _until(vnf, server, 'up')
    first = _answers(vnf)
    for server in SERVERS:
        case.assertGreaterEqual(first.count(server), CLIENTS // 8, first)
    vnf.swap()
    case.assertEqual(first, _answers(vnf), 'a client moved')
    case.assertEqual(3, vnf.ping('left', vnf.address('vif0'), 3))
    _check_draining(case, vnf, first)
    vnf.stop(processes[2])
    _until(vnf, SERVERS[2], 'down')
    _check_without(case, vnf, first, SERVERS[2])
    _serve(vnf, SERVERS[2])
    _until(vnf, SERVERS[2], 'up')
    case.assertEqual(first, _answers(vnf), 'a client stays away')


def _check_draining(case, vnf, first):
    """A connection to a draining server goes on; new ones go elsewhere."""
    drained, flows = first[0], vnf.count('flows.size')
    slow = vnf.start('left', *_question(vnf, _clients()[0], after_s=2))
    vnf.until(lambda: vnf.count('flows.size') > flows, 'no flow opens')
    vnf.control.write('pool.draining', drained)
    _check_without(case, vnf, first, drained)
    case.assertEqual(drained, vnf.wait(slow).strip())
    vnf.control.write('pool.draining', '')
    case.assertEqual(first, _answers(vnf), 'a client stays away')


def _check_without(case, vnf, first, lost):
    """Only the clients of a server without new flows move."""
    for old, new in zip(first, _answers(vnf)):
        case.assertNotEqual(lost, new)
        case.assertIn(old, (lost, new), 'a client of another server moved')

# SPDX-License-Identifier: Apache-2.0
"""The load balancer with socat as many clients and five servers."""

CLIENTS = 20
SERVERS = ['10.9.2.9', '10.9.2.19', '10.9.2.29']
SERVERS6 = ['2001:db8:2::9', '2001:db8:2::19']
PROPERTIES = {'service_port': 8080, 'health_port': 8080,
              'health_path': '/health', 'servers': SERVERS + SERVERS6}
_GOOD, _BUSY = 'HTTP/1.0 204 Fine', 'HTTP/1.0 503 Busy'


def _bound(address):
    return f'[{address}]' if ':' in address else address


def _status(vnf, address, line):
    """Let a server answer with a status line."""
    (vnf.folder / address).write_text(f'{line}\r\n\r\n')


def _script(vnf, address):
    """Write what a server does for a connection; return the file."""
    file = vnf.folder / f'{address.replace(":", "-")}.sh'
    file.write_text(f'read line\ncat {vnf.folder}/{address}\necho {address}\n')
    return file


def _serve(vnf, address):
    """Start a server that answers a line with a status and its address."""
    _status(vnf, address, _GOOD)
    version = 6 if ':' in address else 4
    server = vnf.start(
        'right', 'socat',
        f'TCP{version}-LISTEN:8080,bind={_bound(address)},reuseaddr,fork',
        f'EXEC:sh {_script(vnf, address)}')
    vnf.until(lambda: f'{_bound(address)}:8080' in vnf.run(
        'right', 'ss', '-ltnH'), f'{address} does not listen')
    return server


def _question(vnf, client, after_s=0):
    own = vnf.interfaces[0].ip6 if ':' in client else vnf.address('vif0')
    service = (f'TCP:{_bound(own)}:8080,connect-timeout=20,'
               f'bind={_bound(client)}')
    return 'sh', '-c', f'(sleep {after_s}; echo) | socat -t 20 - {service}'


def _answer(text):
    """Return the server that an answer names."""
    return text.split()[-1]


def _answers(vnf, clients=None):
    """Return which server answers each client."""
    return [_answer(vnf.run('left', *_question(vnf, client)))
            for client in clients or _clients()]


def _clients():
    return [f'10.9.1.{100 + number}' for number in range(CLIENTS)]


def _clients6():
    return [f'2001:db8:1::{100 + number}' for number in range(CLIENTS)]


def _until(vnf, address, state):
    vnf.until(lambda: f'{address} {state}' in vnf.control.read('pool.status'),
              f'{address} does not become {state}')


def _six(vnf, host, *words):
    vnf.run(host, 'ip', '-6', *words, 'dev', 'eth0')


def _add_addresses(vnf):
    for server in SERVERS[1:]:
        vnf.add_address('right', f'{server}/24')
    for client in _clients():
        vnf.add_address('left', f'{client}/24')
    for host, addresses in (('left', _clients6()), ('right', SERVERS6)):
        for address in addresses:
            _six(vnf, host, 'address', 'add', f'{address}/64', 'nodad')
    _six(vnf, 'right', 'route', 'add', 'default', 'via',
         vnf.interfaces[1].ip6)


def check(case, vnf):
    _add_addresses(vnf)
    processes = {server: _serve(vnf, server) for server in SERVERS + SERVERS6}
    for server in processes:
        _until(vnf, server, 'up')
    first = _answers(vnf)
    for server in SERVERS:
        case.assertGreaterEqual(first.count(server), CLIENTS // 8, first)
    first6 = _answers(vnf, _clients6())
    case.assertEqual(set(SERVERS6), set(first6))
    vnf.swap()
    case.assertEqual(first, _answers(vnf), 'a client moved')
    case.assertEqual(first6, _answers(vnf, _clients6()), 'a client moved')
    case.assertEqual(3, vnf.ping('left', vnf.address('vif0'), 3))
    case.assertEqual(3, vnf.ping('left', vnf.interfaces[0].ip6, 3))
    _check_draining(case, vnf, first, _clients(), 'flows.size')
    _check_draining(case, vnf, first6, _clients6(), 'flows6.table_size')
    vnf.stop(processes[SERVERS[2]])
    _until(vnf, SERVERS[2], 'down')
    _check_without(case, vnf, first, SERVERS[2], _clients())
    _serve(vnf, SERVERS[2])
    _until(vnf, SERVERS[2], 'up')
    case.assertEqual(first, _answers(vnf), 'a client stays away')
    _check_status(case, vnf, first6)


def _check_draining(case, vnf, first, clients, count):
    """A connection to a draining server continues; new ones go elsewhere."""
    drained, flows = first[0], vnf.count(count)
    slow = vnf.start('left', *_question(vnf, clients[0], after_s=2))
    vnf.until(lambda: vnf.count(count) > flows, 'no flow opens')
    vnf.control.write('pool.draining', drained)
    _check_without(case, vnf, first, drained, clients)
    case.assertEqual(drained, _answer(vnf.wait(slow)))
    vnf.control.write('pool.draining', '')
    case.assertEqual(first, _answers(vnf, clients), 'a client stays away')


def _check_without(case, vnf, first, lost, clients):
    """Only the clients of a server without new flows move."""
    for old, new in zip(first, _answers(vnf, clients)):
        case.assertNotEqual(lost, new)
        case.assertIn(old, (lost, new), 'a client of another server moved')


def _check_status(case, vnf, first6):
    """A server that answers with a wrong status gets no flows."""
    for lost, others in ((SERVERS[0], None), (SERVERS6[0], _clients6())):
        _status(vnf, lost, _BUSY)
        _until(vnf, lost, 'down')
        case.assertIn('status 503', _line(vnf, lost))
        case.assertNotIn(lost, _answers(vnf, others))
        _status(vnf, lost, _GOOD)
        _until(vnf, lost, 'up')
        case.assertTrue(_line(vnf, lost).endswith(' answered'))
    case.assertEqual(first6, _answers(vnf, _clients6()))


def _line(vnf, address):
    """Return a server's line of the statistics."""
    found = [line for line in vnf.control.read('pool.statistics').splitlines()
             if line.split()[0] == address]
    return found[0].strip()

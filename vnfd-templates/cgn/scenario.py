# SPDX-License-Identifier: Apache-2.0
"""Carrier-grade NAT with curl, socat, ping, iperf3 and tcpdump as judges."""

import re

BLOCK = 16
PUBLIC = '10.9.2.64'
GREEDY = '10.9.1.77'
PROPERTIES = {'subscribers': '10.9.1.0/24', 'public': f'{PUBLIC}/32',
              'block': BLOCK, 'syslog': {'address': '10.9.2.9'}}
_TIMES = ('flows.tcp_timeout', 'flows.tcp_transitory_timeout',
          'flows.udp_timeout', 'pings.timeout')


def _first_port(address):
    return 1024 + int(address.split('.')[3]) * BLOCK


def check(case, vnf):
    server = vnf.address('right')
    messages = vnf.serve_syslog('right')
    vnf.add_address('left', f'{GREEDY}/24')
    vnf.serve_http('right', 80)
    for address in (vnf.address('left'), GREEDY):
        port = _public_port(case, vnf, address, server)
        case.assertIn(port - _first_port(address), range(BLOCK))
        case.assertEqual(address, vnf.control.read(
            f'blocks.lookup {PUBLIC} {port}'))
    case.assertEqual(5, vnf.ping('left', server))
    case.assertTrue(vnf.silent('right', vnf.address('left')))
    _check_limit(case, vnf, server)
    _check_swap(case, vnf, server)
    _check_messages(vnf, messages)


def _public_port(case, vnf, address, server):
    """Return the port of a connection as the server sees it."""
    capture = vnf.capture('right', 'tcp[13] == 2', 1)
    vnf.run('left', 'curl', '-sf', '--interface', address,
            f'http://{server}/')
    text = vnf.wait(capture)
    port = re.search(rf'{PUBLIC}\.(\d+) > {server}\.80', text)
    case.assertTrue(port, text)
    return int(port[1])


def _check_limit(case, vnf, server):
    """A greedy subscriber uses its own ports up, and no other's."""
    for port in range(3 * BLOCK):
        vnf.run('left', 'sh', '-c', f'echo | socat -u - '
                f'UDP-SENDTO:{server}:{2000 + port},bind={GREEDY}')
    vnf.until(lambda: int(_block(vnf, GREEDY)[4]) >= 2 * BLOCK,
              'too few flows are refused')
    flows = vnf.control.read('flows.udp_table')
    case.assertEqual(BLOCK, flows.count(f'({GREEDY}, '), flows)
    vnf.run('left', 'curl', '-sf', f'http://{server}/')
    row = _block(vnf, GREEDY)
    first = _first_port(GREEDY)
    case.assertEqual([PUBLIC, f'{first}-{first + BLOCK - 1}'], row[1:3])
    case.assertEqual(2 * BLOCK, int(row[4]), row)


def _check_messages(vnf, messages):
    """A subscriber's block is logged when it comes into use, and after."""
    first = _first_port(GREEDY)
    text = (f'"subscriber":"{GREEDY}","public":"{PUBLIC}",'
            f'"first_port":{first},"last_port":{first + BLOCK - 1}}}')
    own = vnf.address('vif1')

    def has(event):
        line = f'134 {own} cgn block {{"event":"{event}",{text}'
        return [each.replace('block  {', 'block {') for each in
                messages.read_text().splitlines()].count(line) == 1
    vnf.until(lambda: has('allocated'), 'no message about a new block')
    for name in _TIMES:
        vnf.control.write(name, '1')
    vnf.until(lambda: has('freed'), 'no message about the end of a block')


def _block(vnf, subscriber):
    """Return the words about a subscriber's block."""
    (row,) = [line.split() for line in
              vnf.control.read('blocks.table').splitlines()
              if line.startswith(subscriber)]
    return row


def _check_swap(case, vnf, server):
    """A connection keeps its port."""
    vnf.serve('right', 5201, 'iperf3', '-s', '-1')
    before = vnf.count('flows.table_size')
    client = vnf.start('left', 'iperf3', '-c', server, '-t', '2', '-b', '20M')
    vnf.until(lambda: vnf.count('flows.table_size') >= before + 2,
              'no flow opens')
    vnf.swap()
    case.assertIn('iperf Done', vnf.wait(client))

# SPDX-License-Identifier: Apache-2.0
"""The flow monitor with iperf3, ping, and nfcapd's collector as judges."""

import json

SHARED_NETWORK = True
COLLECTOR = '10.9.1.10'
PROPERTIES = {'threshold': 50, 'collector': COLLECTOR, 'idle': 600}
BYTES = 1000
LEFT6, RIGHT6 = '2001:db8:1::9', '2001:db8:1::10'


def check(case, vnf):
    server = vnf.address('right')
    collector = _collect(vnf)
    for host, address in (('left', LEFT6), ('right', RIGHT6)):
        vnf.run(host, 'ip', '-6', 'address', 'add', f'{address}/64', 'dev',
                'eth0', 'nodad')
    case.assertEqual(5, vnf.ping('left', RIGHT6))
    case.assertEqual(5, vnf.ping('left', server))
    vnf.serve('right', 5201, 'iperf3', '-s')
    client = vnf.start('left', 'iperf3', '-J', '-c', server, '-u', '-b', '8M',
                       '-l', BYTES, '-t', '2')
    vnf.until(lambda: '10.9.1.9' in vnf.control.read('rates.look'),
              'the sender has no rate')
    data = json.loads(vnf.wait(client))['end']['sum']
    vnf.until(lambda: not _open(vnf), 'a connection stays open')
    case.assertEqual(5, vnf.ping('left', server))
    # one TCP flow for control, one UDP flow with the data
    case.assertEqual(2, vnf.count('packets.nagg'))
    case.assertGreaterEqual(vnf.count('packets.count'),
                            data['packets'] - data['lost_packets'])
    case.assertGreaterEqual(vnf.count('other.count'), 20,
                            'ten pings and answers')
    flows = vnf.count('flows.size')
    vnf.swap()
    case.assertEqual(flows, vnf.count('flows.size'))
    case.assertEqual(5, vnf.ping('left', server))
    _check_export(case, vnf, collector)


def _open(vnf):
    """Return the connections that may still send."""
    return ''.join(vnf.run(host, 'ss', '-tnaH', 'exclude', 'listening',
                           'exclude', 'time-wait')
                   for host in ('left', 'right'))


def _collect(vnf):
    """Start the collector on the host right."""
    return vnf.serve('right', 4739, 'nfcapd', '-p', '4739', '-b', COLLECTOR,
                     '-l', vnf.folder, '-t', '3600', udp=True)


def _check_export(case, vnf, collector):
    """The collector stores what the hosts sent."""
    data, sixes = vnf.count('packets.count'), vnf.count('packets6.count')
    arrival = vnf.capture('right', 'udp port 4739', 1)
    vnf.control.write('ipfix.flush', '')
    exported = vnf.count('ipfix.exported')
    case.assertEqual(0, vnf.count('ipfix.lost'))
    vnf.wait(arrival)
    case.assertIn('Terminating', vnf.stop(collector))
    rows = _rows(vnf)
    case.assertEqual(exported, len(rows), rows)
    # A host answers data for a port that is closed, also the monitor's own.
    other = [row for row in rows if row[2] == '1']
    case.assertEqual(vnf.count('other.count'),
                     sum(int(row[3]) for row in other), rows)
    pings = [row for row in other if {*row[:2]} == {'10.9.1.9', COLLECTOR}]
    case.assertEqual([('10.9.1.9', COLLECTOR), (COLLECTOR, '10.9.1.9')],
                     sorted((row[0], row[1]) for row in pings)[::-1])
    case.assertEqual(['15', '15'], [row[3] for row in pings])
    case.assertEqual(['1260', '1260'], [row[4] for row in pings])
    both = [row for row in rows if row[2] in ('6', '17') and ':' not in row[0]]
    case.assertEqual(data, sum(int(row[3]) for row in both))
    _check_export6(case, rows, sixes)


def _check_export6(case, rows, count):
    """The pings of IPv6 are stored, too; hosts also look for neighbors."""
    six = [row for row in rows if ':' in row[0]]
    case.assertGreaterEqual(sum(int(row[3]) for row in six), count, rows)
    for ends in ([LEFT6, RIGHT6], [RIGHT6, LEFT6]):
        found = [row for row in six if row[:3] == [*ends, '58']]
        case.assertEqual(1, len(found), rows)
        case.assertGreaterEqual(int(found[0][3]), 5, found)
        case.assertGreaterEqual(int(found[0][4]), 5 * 104, found)


def _rows(vnf):
    """Return source, destination, protocol, packets, bytes of all records."""
    text = vnf.run('right', 'nfdump', '-R', vnf.folder, '-q', '-N', '-6', '-o',
                   'fmt:%sa,%da,%pr,%pkt,%byt')
    return [[word.strip() for word in line.split(',')]
            for line in text.splitlines() if line.count(',') == 4]

# SPDX-License-Identifier: Apache-2.0
"""The flow monitor with iperf3, ping, and nfcapd's collector as judges."""

SHARED_NETWORK = True
COLLECTOR = '10.9.1.10'
PROPERTIES = {'threshold': 50, 'collector': COLLECTOR, 'idle': 600}
BYTES = 1000


def check(case, vnf):
    server = vnf.address('right')
    collector = _collect(vnf)
    case.assertEqual(5, vnf.ping('left', server))
    vnf.serve('right', 5201, 'iperf3', '-s')
    vnf.run('left', 'iperf3', '-c', server, '-u', '-b', '8M', '-l', BYTES,
            '-t', '1')
    # one TCP flow for control, one UDP flow with the data
    case.assertEqual(2, vnf.count('packets.nagg'))
    case.assertGreaterEqual(vnf.count('packets.count'), 1000)
    case.assertIn('10.9.1.9', vnf.control.read('rates.look'))
    case.assertEqual(10, vnf.count('other.count'), 'ten pings and answers')
    flows = vnf.count('flows.size')
    vnf.swap()
    case.assertEqual(flows, vnf.count('flows.size'))
    case.assertEqual(5, vnf.ping('left', server))
    _check_export(case, vnf, collector)


def _collect(vnf):
    """Start the collector on the host right."""
    return vnf.serve('right', 4739, 'nfcapd', '-p', '4739', '-b', COLLECTOR,
                     '-l', vnf.folder, '-t', '3600', udp=True)


def _check_export(case, vnf, collector):
    """The collector stores what the hosts sent."""
    data = vnf.count('packets.count')
    arrival = vnf.capture('right', 'udp port 4739', 1)
    vnf.control.write('ipfix.flush', '')
    exported = vnf.count('ipfix.exported')
    case.assertEqual(0, vnf.count('ipfix.lost'))
    arrival.communicate(timeout=5)
    case.assertIn('Terminating', vnf.stop(collector))
    rows = _rows(vnf)
    case.assertEqual(exported, len(rows), rows)
    pings = [row for row in rows if row[2] == '1']
    case.assertEqual([('10.9.1.9', COLLECTOR), (COLLECTOR, '10.9.1.9')],
                     sorted((row[0], row[1]) for row in pings)[::-1])
    case.assertEqual(['10', '10'], [row[3] for row in pings])
    case.assertEqual(['840', '840'], [row[4] for row in pings])
    both = [row for row in rows if row[2] in ('6', '17')]
    case.assertEqual(data, sum(int(row[3]) for row in both))


def _rows(vnf):
    """Return source, destination, protocol, packets, bytes of all records."""
    text = vnf.run('right', 'nfdump', '-R', vnf.folder, '-q', '-N', '-o',
                   'fmt:%sa,%da,%pr,%pkt,%byt')
    return [[word.strip() for word in line.split(',')]
            for line in text.splitlines() if line.count(',') == 4]

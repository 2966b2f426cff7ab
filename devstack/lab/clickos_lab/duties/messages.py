# SPDX-License-Identifier: Apache-2.0
"""Duties of functions that send messages of syslog."""

import json
import re

from scapy import all as scapy

from clickos_lab.duties import duty
from clickos_lab.duties import place as places

_SUBSCRIBER = '10.9.1.201'
_PORT = 5140
_MESSAGE = re.compile(
    rb'<(\d+)>1 (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6})Z (\S+) (\S+) - (\S+) '
    rb'- (\{.*\})')


def _message(text):
    """Return a condition: a message of syslog with a text; its fields."""
    def wanted(frame):
        udp = frame.getlayer(scapy.UDP)
        if not udp or udp.dport != _PORT or text not in bytes(udp.payload):
            return None
        found = _MESSAGE.fullmatch(bytes(udp.payload))
        return found and [frame[scapy.IP].src.encode(), udp.sport,
                          *found.groups()]
    return wanted


class _Receiver:
    """Let right receive the messages for a while."""

    def __init__(self, place):
        self._control = place.vnf.control

    def __enter__(self):
        self._before = self._control.read('syslog.target')
        self._control.write('syslog.target', f'{places.RIGHT_IP} {_PORT}')

    def __exit__(self, *_error):
        self._control.write('syslog.target', self._before)


@duty.duty('logs blocks of ports that come into use',
           'RFC 5424, 6; RFC 5426, 3; RFC 6888, REQ-12', ('cgn',))
def blocks(case, place):
    with _Receiver(place):
        since = place.right.mark()
        place.send(place.packet(b'new', sport=5150, src=_SUBSCRIBER))
        source, sport, priority, _, host, name, kind, text = \
            place.right.expect(_message(_SUBSCRIBER.encode()), 'message',
                               since)
    case.assertEqual((place.right_ip.encode(), 514), (source, sport))
    case.assertEqual((b'134', source, b'cgn', b'block'),
                     (priority, host, name, kind))
    found = json.loads(text)
    case.assertEqual('allocated', found['event'])
    case.assertEqual(_SUBSCRIBER, place.vnf.control.read(
        f'blocks.lookup {found["public"]} {found["last_port"]}'))


@duty.duty('sends alerts as messages', 'RFC 5424, 6; RFC 5426, 3', ('ips',))
def alerts(case, place):
    with _Receiver(place):
        since = place.right.mark()
        place.send(place.packet(b'/etc/passwd', sport=5161))
        source, _, priority, time, host, name, kind, text = \
            place.right.expect(_message(b'"src_port":5161'), 'message', since)
    case.assertEqual((b'132', source, b'ips', b'alert'),
                     (priority, host, name, kind))
    found = json.loads(text)
    case.assertEqual(1000001, found['alert']['signature_id'])
    case.assertEqual(f'{time.decode()}+0000', found['timestamp'])

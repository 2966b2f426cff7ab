# SPDX-License-Identifier: Apache-2.0
"""Duties of the BRAS: RADIUS at right, IPv6 at left."""

import contextlib
import hashlib
import hmac
import os
import struct
import sys

from scapy import all as scapy

from clickos_lab.duties import duty
from clickos_lab.duties import place as places
from clickos_lab.vnf import pppoe_peer

_SERVER = ('bras',)
_SECRET = b'xyzzy5461'
_ADDRESS, _PREFIX = '10.9.2.110', '2001:db8:9:6e::'
_LOGINS, _RECORDS = 1812, 1813
_HEADER, _SUM = 20, 16
_USER_NAME, _CHAP_PASSWORD, _NAS_ADDRESS, _CLASS, _NAS_NAME = 1, 3, 4, 25, 32
_STATUS, _SESSION_ID, _CHALLENGE, _SIGNATURE = 40, 44, 60, 80
_CAUSE = 49
_START, _STOP = 1, 2


class _Request:
    """A packet of the BRAS to a RADIUS server.

    :ivar values: {type: value} of its attributes
    """

    def __init__(self, frame, data):
        self.data = data
        self.from_ip, self.from_port = frame[scapy.IP].src, frame.sport
        self.port, self.code, self.id = frame.dport, data[0], data[1]
        self.authenticator = data[4:_HEADER]
        self.values, self.places, at = {}, {}, _HEADER
        while at < len(data):
            self.values[data[at]] = data[at + 2:at + data[at + 1]]
            self.places[data[at]] = at + 2
            at += data[at + 1]


def _md5(*parts):
    return hashlib.md5(b''.join(parts), usedforsecurity=False).digest()


def _request(code, *wanted):
    """Return a condition: a request with a code and values."""
    def found(frame):
        udp = frame.getlayer(scapy.UDP)
        if udp is None or udp.dport not in (_LOGINS, _RECORDS):
            return None
        made = _Request(frame, bytes(udp)[8:udp.len])
        return made if made.code == code and all(
            made.values.get(kind) == value for kind, value in wanted) \
            else None
    return found


def _answer(place, request, code, attributes=b'', secret=_SECRET):
    """Answer as a RADIUS server, with Message-Authenticator."""
    size = _HEADER + 2 + _SUM + len(attributes)
    head = struct.pack('!BBH', code, request.id, size)
    sign = bytes([_SIGNATURE, 2 + _SUM])
    empty = head + request.authenticator + sign + bytes(_SUM) + attributes
    sign += hmac.digest(secret, empty, 'md5')
    data = head + _md5(head, request.authenticator, sign, attributes,
                       secret) + sign + attributes
    place.right.send_ip(
        scapy.IP(src=places.RIGHT_IP, dst=request.from_ip)
        / scapy.UDP(sport=request.port, dport=request.from_port) / data,
        place.right_mac)


@contextlib.contextmanager
def _dialed(place, *words):
    """A subscriber that dials as eve, whom only the RADIUS server knows."""
    place.vnf.control.write('server.radius_servers', places.RIGHT_IP)
    place.vnf.control.write('server.radius_secret', _SECRET.decode())
    peer = place.vnf.start('left', sys.executable, pppoe_peer.__file__,
                           f'eve{os.getpid()}', 'eve', 'three', *words)
    try:
        yield peer
    finally:
        peer.kill()
        peer.wait()
        with contextlib.suppress(Exception):
            place.vnf.control.write('server.disconnect', 'eve')
        place.vnf.control.write('server.radius_servers', '')


def _asked(place, since):
    return place.right.expect(
        _request(1, (_USER_NAME, b'eve')), 'Access-Request', since)


def _accept(place, request):
    _answer(place, request, 2, bytes(
        [8, 6, *map(int, _ADDRESS.split('.')), _CLASS, 6, *b'gold']))


@duty.duty('asks a RADIUS server for a CHAP login', 'RFC 2865, 5.3', _SERVER)
def asks(case, place):
    since = place.right.mark()
    with _dialed(place) as peer:
        request = _asked(place, since)
        chap, challenge = (request.values[kind]
                           for kind in (_CHAP_PASSWORD, _CHALLENGE))
        case.assertEqual(_md5(chap[:1], b'three', challenge), chap[1:])
        case.assertEqual(scapy.inet_aton(place.right_ip),
                         request.values[_NAS_ADDRESS])
        case.assertEqual(b'clickos', request.values[_NAS_NAME])
        _accept(place, request)
        case.assertIn(f'up {_ADDRESS} ', peer.stdout.readline())


@duty.duty('signs its questions, and needs signed answers',
           'RFC 3579, 3.2', _SERVER)
def signs(case, place):
    since = place.right.mark()
    with _dialed(place) as peer:
        request = _asked(place, since)
        at = request.places[_SIGNATURE]
        empty = request.data[:at] + bytes(_SUM) + request.data[at + _SUM:]
        case.assertEqual(hmac.digest(_SECRET, empty, 'md5'),
                         request.values[_SIGNATURE])
        head = struct.pack('!BBH', 3, request.id, _HEADER)
        place.right.send_ip(
            scapy.IP(src=places.RIGHT_IP, dst=request.from_ip)
            / scapy.UDP(sport=request.port, dport=request.from_port)
            / (head + _md5(head, request.authenticator, _SECRET)),
            place.right_mac)
        _answer(place, request, 3, secret=b'another')
        _accept(place, request)
        case.assertIn(f'up {_ADDRESS} ', peer.stdout.readline())


@duty.duty('accounts for sessions', 'RFC 2866, 4.1', _SERVER)
def accounts(case, place):
    since = place.right.mark()
    with _dialed(place) as peer:
        _accept(place, _asked(place, since))
        case.assertIn(f'up {_ADDRESS} ', peer.stdout.readline())
        start = _record(place, _START, since)
        case.assertEqual(_md5(start.data[:4], bytes(_SUM),
                              start.data[_HEADER:], _SECRET),
                         start.authenticator)
        case.assertEqual(b'gold', start.values[_CLASS])
        _answer(place, start, 5)
        place.vnf.control.write('server.disconnect', 'eve')
        stop = _record(place, _STOP, since)
        case.assertEqual(start.values[_SESSION_ID],
                         stop.values[_SESSION_ID])
        case.assertEqual(6, stop.values[_CAUSE][3])
        _answer(place, stop, 5)


def _record(place, status, since):
    return place.right.expect(
        _request(4, (_STATUS, struct.pack('!I', status))),
        f'record {status}', since)


def _ppp(protocol):
    """Return a condition: what a frame of PPPoE to a host carries."""
    def wanted(frame):
        data = bytes(frame)
        if data[12:14] != b'\x88\x64' or data[20:22] != protocol:
            return None
        return data[22:20 + int.from_bytes(data[18:20], 'big')]
    return wanted


@duty.duty('agrees on interface identifiers', 'RFC 5072, 4.1', _SERVER)
def identifiers(case, place):
    since, right = place.left.mark(), place.right.mark()
    with _dialed(place, 'six'):
        _accept(place, _asked(place, right))
        asks_for = place.left.expect(
            lambda f: (found := _ppp(b'\x80\x57')(f)) and found[0] == 1
            and found, 'Configure-Request', since)
        mac = bytes.fromhex(place.left_mac.replace(':', ''))
        case.assertEqual(
            bytes([1, 10, mac[0] ^ 2]) + mac[1:3] + b'\xff\xfe' + mac[3:],
            asks_for[4:])
        place.left.expect(
            lambda f: (found := _ppp(b'\x80\x57')(f)) and found[0] == 2,
            'Configure-Ack', since)


@duty.duty('advertises a prefix to a subscriber', 'RFC 4861, 6.2.3', _SERVER)
def advertises(case, place):
    since, right = place.left.mark(), place.right.mark()
    with _dialed(place, 'six') as peer:
        _accept(place, _asked(place, right))
        case.assertIn(f'up {_ADDRESS} ', peer.stdout.readline())
        packet = scapy.IPv6(place.left.expect(_ppp(b'\x00\x57'),
                                              'advertisement', since))
        case.assertEqual((255, 'ff02::1'), (packet.hlim, packet.dst))
        found = packet[scapy.ICMPv6NDOptPrefixInfo]
        case.assertEqual((_PREFIX, 64, 1),
                         (found.prefix, found.prefixlen, found.A))
        case.assertGreater(packet[scapy.ICMPv6ND_RA].routerlifetime, 0)

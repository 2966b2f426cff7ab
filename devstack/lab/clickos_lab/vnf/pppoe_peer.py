# SPDX-License-Identifier: Apache-2.0
"""A PPPoE subscriber in user space: scapy is the codec.

``pppoe_peer.py DEVICE NAME PASSWORD [pap] [six]`` opens a session on eth0 and
makes a TUN device, with the address that the server gives, for its packets.
It asks for PAP with the word ``pap``, and for IPv6 with ``six``: then the
kernel takes the server's router advertisements. It prints one line for what
happens, and ends with the session.
"""

import fcntl
import hashlib
import ipaddress
import os
import select
import socket
import struct
import subprocess
import sys

from scapy.layers import l2
from scapy.layers import ppp

_TUNSETIFF = 0x400454ca
_IFF_TUN, _IFF_NO_PI = 1, 0x1000
_DISCOVERY, _SESSION = 0x8863, 0x8864
_PADI, _PADO, _PADR, _PADS, _PADT = 0x09, 0x07, 0x19, 0x65, 0xa7
_SERVICE_NAME, _HOST_UNIQ, _COOKIE = 0x0101, 0x0103, 0x0104
_REQUEST, _ACK, _NAK, _ECHO, _ECHO_REPLY = 1, 2, 3, 9, 10
_MAGIC = 0x01020304
_ALL = 0x0003
_IPV4, _IPV6 = b'\x00\x21', b'\x00\x57'
_IPV6CP = b'\x80\x57'
_IDENTIFIER = 1
_PAP_PROTOCOL = 0xc023
_PATIENCE_S = 30


class Subscriber:
    """One session, from discovery to its end."""

    def __init__(self, device, name, password, pap, six):
        self._device, self._name, self._pap = device, name, pap
        self._six, self._identifier = six, os.urandom(8)
        self._password, self._mark = password.encode(), os.urandom(8)
        self._socket = _socket()
        self._mac = self._socket.getsockname()[4]
        self._server, self._session = b'\xff' * 6, 0
        # IPCP asks for addresses by this one; nothing binds to it.
        self._address = self._dns = '0.0.0.0'  # nosec B104
        self._tun = None

    def run(self):
        """Dial, then carry packets until the server ends the session."""
        self._discover(_PADI)
        while True:
            inputs = [self._socket, *([self._tun] if self._tun else [])]
            ready = select.select(
                inputs, [], [], None if self._tun else _PATIENCE_S)[0]
            if not ready:
                sys.exit('the server does not answer')
            for each in ready:
                if each is self._tun:
                    self._carry(os.read(self._tun, 65535))
                else:
                    self._frame(each.recv(65535))

    def _frame(self, data):
        """Take a frame; IP packets pass without scapy, which is slow."""
        kind, = struct.unpack_from('!H', data, 12)
        if data[:6] != self._mac or kind not in (_DISCOVERY, _SESSION):
            return
        session, length = struct.unpack_from('!HH', data, 16)
        if kind == _SESSION and data[20:22] in (_IPV4, _IPV6):
            if self._tun and session == self._session:
                os.write(self._tun, data[22:20 + length])
        elif kind == _SESSION and data[20:22] == _IPV6CP:
            if session == self._session:
                self._network6(data[22:20 + length])
        elif kind == _DISCOVERY:
            self._discovered(l2.Ether(data)[ppp.PPPoED])
        elif session == self._session:
            self._received(l2.Ether(data)[ppp.PPPoE])

    def _carry(self, packet):
        protocol = {4: _IPV4, 6: _IPV6}.get(packet[0] >> 4)
        if protocol == _IPV4 or protocol and self._six:
            self._send_raw(protocol + packet)

    def _send_raw(self, packet):
        self._write(_SESSION, struct.pack(
            '!BBHH', 0x11, 0, self._session, len(packet)) + packet)

    def _discover(self, code, *tags):
        tags = [(_SERVICE_NAME, b''), (_HOST_UNIQ, self._mark),
                *tags]
        self._write(_DISCOVERY, ppp.PPPoED(code=code) / ppp.PPPoED_Tags(
            tag_list=[ppp.PPPoETag(tag_type=kind, tag_value=value)
                      for kind, value in tags]))

    def _discovered(self, packet):
        tags = {tag.tag_type: tag.tag_value
                for tag in packet[ppp.PPPoED_Tags].tag_list} \
            if ppp.PPPoED_Tags in packet else {}
        if packet.code == _PADT and packet.sessionid == self._session:
            sys.exit('the session is over')
        if tags.get(_HOST_UNIQ) != self._mark:
            return
        if packet.code == _PADO:
            self._server = bytes.fromhex(
                packet.underlayer.src.replace(':', ''))
            self._discover(_PADR, (_COOKIE, tags[_COOKIE]))
        elif packet.code == _PADS:
            if not packet.sessionid:
                sys.exit('the server has no session')
            self._session = packet.sessionid
            self._send(ppp.PPP() / ppp.PPP_LCP_Configure(
                code=_REQUEST, id=1, options=[
                    ppp.PPP_LCP_MRU_Option(max_recv_unit=1492),
                    ppp.PPP_LCP_Magic_Number_Option(magic_number=_MAGIC)]))

    def _received(self, packet):
        for layer, act in ((ppp.PPP_LCP_Configure, self._link),
                           (ppp.PPP_LCP_Echo, self._echo),
                           (ppp.PPP_CHAP_ChallengeResponse, self._challenged),
                           (ppp.PPP_CHAP, self._logged_in),
                           (ppp.PPP_PAP_Response, self._logged_in),
                           (ppp.PPP_IPCP, self._network)):
            if layer in packet:
                act(packet[layer])
                return

    def _link(self, packet):
        if packet.code == _REQUEST:
            login, = (option for option in packet.options
                      if option.type == 3)
            if self._pap and login.auth_protocol != _PAP_PROTOCOL:
                wanted = ppp.PPP_LCP_Auth_Protocol_Option(
                    auth_protocol=_PAP_PROTOCOL)
                self._answer(packet, _NAK, [wanted])
            else:
                self._answer(packet, _ACK, packet.options)
                if self._pap:
                    self._send(ppp.PPP() / ppp.PPP_PAP_Request(
                        id=1, username=self._name, password=self._password))

    def _answer(self, packet, code, options):
        self._send(ppp.PPP() / type(packet)(
            code=code, id=packet.id, options=options))

    def _echo(self, packet):
        if packet.code == _ECHO:
            self._send(ppp.PPP() / ppp.PPP_LCP_Echo(
                code=_ECHO_REPLY, id=packet.id, magic_number=_MAGIC))

    def _challenged(self, packet):
        answer = hashlib.md5(bytes([packet.id]) + self._password
                             + packet.value, usedforsecurity=False)
        self._send(ppp.PPP() / ppp.PPP_CHAP_ChallengeResponse(
            code=2, id=packet.id, value=answer.digest(),
            optional_name=self._name))

    def _logged_in(self, packet):
        good = 2 if isinstance(packet, ppp.PPP_PAP_Response) else 3
        if packet.code != good:
            sys.exit('login incorrect')
        if self._six:
            self._ask6(1)
        self._ask(1)

    def _ask6(self, number):
        """Ask for this end's interface identifier (RFC 5072)."""
        self._send_raw(_IPV6CP + struct.pack(
            '!BBHBB', _REQUEST, number, 14, _IDENTIFIER, 10)
            + self._identifier)

    def _network6(self, packet):
        code, number, length = struct.unpack_from('!BBH', packet)
        if code == _REQUEST:
            self._send_raw(_IPV6CP + bytes([_ACK]) + packet[1:length])
        elif code == _NAK:
            self._identifier = packet[6:14]
            self._ask6(number + 1)

    def _ask(self, number):
        self._send(ppp.PPP() / ppp.PPP_IPCP(
            code=_REQUEST, id=number, options=[
                ppp.PPP_IPCP_Option_IPAddress(data=self._address),
                ppp.PPP_IPCP_Option_DNS1(data=self._dns)]))

    def _network(self, packet):
        if packet.code == _REQUEST:
            self._answer(packet, _ACK, packet.options)
        elif packet.code == _NAK:
            given = {option.type: option.data for option in packet.options}
            self._address = given.get(3, self._address)
            self._dns = given.get(129, self._dns)
            self._ask(packet.id + 1)
        elif packet.code == _ACK:
            self._tun = _device(self._device, self._address,
                                self._six and self._identifier)
            print(f'up {self._address} dns {self._dns} '
                  f'session {self._session}', flush=True)

    def _send(self, packet):
        self._write(_SESSION, ppp.PPPoE(sessionid=self._session) / packet)

    def _write(self, kind, packet):
        frame = self._server + self._mac + struct.pack('!H', kind)
        self._socket.send(frame + bytes(packet))


def _socket():
    """Return a socket for all frames, in the order in which they come."""
    made = socket.socket(socket.AF_PACKET, socket.SOCK_RAW,
                         socket.htons(_ALL))
    made.bind(('eth0', _ALL))
    return made


def _device(name, address, identifier):
    tun = os.open('/dev/net/tun', os.O_RDWR)
    fcntl.ioctl(tun, _TUNSETIFF, struct.pack(
        '16sH22x', name.encode(), _IFF_TUN | _IFF_NO_PI))
    link_local = [('address', 'add', str(ipaddress.IPv6Address(
        b'\xfe\x80' + bytes(6) + identifier)) + '/64', 'dev', name, 'nodad')
    ] if identifier else []
    for words in (('address', 'add', f'{address}/32', 'dev', name),
                  ('link', 'set', name, 'addrgenmode', 'none'), *link_local,
                  ('link', 'set', name, 'up', 'mtu', '1492'),
                  ('route', 'replace', 'default', 'dev', name)):
        subprocess.run(['ip', *words], check=True)
    return tun


if __name__ == '__main__':
    Subscriber(*sys.argv[1:4], 'pap' in sys.argv[4:],
               'six' in sys.argv[4:]).run()

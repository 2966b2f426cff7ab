# SPDX-License-Identifier: Apache-2.0
"""One encrypted connection between two hosts, for one guest that moves.

Each side makes a key for each move, and Nova carries both certificates to the
other side. So the hosts need no keys of their own and trust each other for
this move only. Nova writes what it carries into its debug log: certificates
are no secret, and no key leaves its host.
"""

import collections
import contextlib
import ipaddress
import json
import selectors
import socket
import ssl
import time

from clickos_client import plain_json
from oslo_log import log as logging

from nova_clickos.migration import identity

LOG = logging.getLogger(__name__)

#: The longest message in bytes: configurations and tables of a guest.
MAX_MESSAGE = 32 << 20
#: Seconds that a connection may take to prove who it is.
_GREETING_S = 3
#: Most handshakes under way: of all addresses, and of one.
_GREETINGS, _GREETINGS_OF_ONE = 16, 4
#: The prefix of a network of IPv6. A host may use all its addresses.
_OF_IPV6 = 64
#: Seconds that the other host may take to read a message.
_SEND_S = 30
_CHUNK = 1 << 16


class ChannelError(Exception):
    """The other host does not answer as it should."""


class Channel:
    """Messages over a connection, each a line of JSON."""

    def __init__(self, sock):
        self._sock = sock
        self._pending = b''

    def send(self, message):
        """Send a message, a dict."""
        try:
            self._sock.sendall(json.dumps(message).encode('ascii') + b'\n')
        except OSError as e:
            raise ChannelError('the connection ended: %s' % e)

    def receive(self, timeout_s, most=MAX_MESSAGE):
        """:returns: the next message, a dict"""
        deadline = time.monotonic() + timeout_s
        while b'\n' not in self._pending:
            if len(self._pending) > most:
                raise ChannelError('a message of more than %d bytes' % most)
            self._pending += self._read(deadline)
        line, self._pending = self._pending.split(b'\n', 1)
        try:
            message = plain_json.loads(line)
        except ValueError:
            message = None
        if not isinstance(message, dict):
            raise ChannelError('a message that is not a JSON object')
        return message

    def _read(self, deadline):
        left_s = deadline - time.monotonic()
        try:
            if left_s <= 0:
                raise TimeoutError('no message in time')
            self._sock.settimeout(left_s)
            chunk = self._sock.recv(_CHUNK)
        except OSError as e:
            raise ChannelError('the connection ended: %s' % e)
        if not chunk:
            raise ChannelError('the other host closed the connection')
        return chunk

    def close(self):
        """End the connection."""
        self._sock.close()


class Listener:
    """Waits for the source of one guest."""

    def __init__(self, address, ports, source):
        """Listen.

        :param address: of this host.
        :param ports: range of TCP ports.
        :param source: certificate of the source, which alone is let in
        :raises: ChannelError if none is free
        """
        own = identity.Identity()
        self._certificate = own.certificate
        try:
            self._context = identity.context(ssl.PROTOCOL_TLS_SERVER, own,
                                             source)
        except (ssl.SSLError, ValueError, TypeError) as e:
            raise ChannelError('the certificate of the source: %s' % e)
        self._sock = _listen(address, ports)
        self._address = address

    def invitation(self):
        """:returns: what connect() needs, text for Nova to carry"""
        return json.dumps({
            'address': self._address, 'port': self._sock.getsockname()[1],
            'certificate': self._certificate})

    def accept(self, is_over):
        """Wait for the source.

        :param is_over: says that the guest is no longer expected
        :returns: Channel, None if it is over
        """
        try:
            greetings = _Greetings(self._sock, self._context)
        except (OSError, ValueError):
            return None     # close() was first
        with contextlib.closing(greetings):
            while not is_over():
                sock = greetings.step(1)
                if sock is not None:
                    sock.settimeout(_SEND_S)
                    return Channel(sock)
        return None

    def close(self):
        """Listen no more."""
        self._sock.close()


class _Greetings:
    """Handshakes under way. None waits for another, and each ends in time.

    A connection beyond the limits ends the oldest one: of its address, else
    of the network that has most. So strangers cannot keep a source away that
    answers at once.
    """

    def __init__(self, listener, context):
        self._listener, self._context = listener, context
        self._under_way = {}    # socket: address, deadline; the oldest first
        self._rejected = 0
        listener.setblocking(False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(listener, selectors.EVENT_READ)

    def step(self, timeout_s):
        """Go on with what is ready.

        :returns: the socket of the source, None if it is not there yet
        """
        for key, _ in self._selector.select(self._until_next(timeout_s)):
            if key.fileobj is self._listener:
                self._admit()
            elif key.fileobj in self._under_way and self._go_on(key.fileobj):
                self._forget(key.fileobj)
                return key.fileobj
        now_s = time.monotonic()
        for sock, (_, deadline_s) in list(self._under_way.items()):
            if deadline_s <= now_s:
                self._reject(sock, 'no greeting within %s s' % _GREETING_S)
        return None

    def close(self):
        """End what is under way."""
        for sock in list(self._under_way):
            self._forget(sock)
            sock.close()
        self._selector.close()
        if self._rejected > 1:
            LOG.warning('Rejected %d connections to the migration port',
                        self._rejected)

    def _until_next(self, timeout_s):
        """:returns: seconds until the next deadline, at most timeout_s"""
        first_s = min((deadline_s for _, deadline_s
                       in self._under_way.values()),
                      default=float('inf'))
        return min(timeout_s, max(0, first_s - time.monotonic()))

    def _admit(self):
        try:
            raw, peer = self._listener.accept()
        except OSError:
            return      # it is gone again
        address = peer[0]
        of_one = [sock for sock, (other, _) in self._under_way.items()
                  if other == address]
        if len(of_one) >= _GREETINGS_OF_ONE:
            self._reject(of_one[0], 'too many of %s' % address)
        elif len(self._under_way) >= _GREETINGS:
            self._reject(self._surplus(), 'too many')
        raw.setblocking(False)
        try:
            sock = self._context.wrap_socket(raw, server_side=True,
                                             do_handshake_on_connect=False)
        except OSError:
            raw.close()     # it is gone again
            return
        self._under_way[sock] = address, time.monotonic() + _GREETING_S
        self._selector.register(sock, selectors.EVENT_READ)

    def _surplus(self):
        """:returns: the oldest of the network, then address, with most"""
        addresses = collections.Counter()
        networks = collections.Counter()
        for address, _ in self._under_way.values():
            addresses[address] += 1
            networks[_network(address)] += 1

        def size(sock):
            address, _ = self._under_way[sock]
            return networks[_network(address)], addresses[address]
        return max(self._under_way, key=size)

    def _go_on(self, sock):
        """:returns: True if the source has proved who it is"""
        try:
            sock.do_handshake()
            return True
        except ssl.SSLWantReadError:
            self._selector.modify(sock, selectors.EVENT_READ)
        except ssl.SSLWantWriteError:
            self._selector.modify(sock, selectors.EVENT_WRITE)
        except OSError as e:
            self._reject(sock, e)
        return False

    def _reject(self, sock, reason):
        """Close it; the log has the first one, and their number."""
        if not self._rejected:
            LOG.warning('Rejected a connection to the migration port: %s',
                        reason)
        self._rejected += 1
        self._forget(sock)
        sock.close()

    def _forget(self, sock):
        self._selector.unregister(sock)
        del self._under_way[sock]


def _network(text):
    """:returns: whose an address is: a host has many of one IPv6 network"""
    address = ipaddress.ip_address(text.partition('%')[0])
    if address.version == 6 and address.ipv4_mapped:
        address = address.ipv4_mapped
    return ipaddress.ip_network(
        (address, 32 if address.version == 4 else _OF_IPV6), strict=False)


def connect(invitation, own, timeout_s):
    """Connect to the target that made an invitation.

    :param own: Identity whose certificate the target expects.
    :returns: Channel
    :raises: ChannelError
    """
    try:
        found = json.loads(invitation)
        context = identity.context(ssl.PROTOCOL_TLS_CLIENT, own,
                                   found['certificate'])
        sock = socket.create_connection((found['address'], found['port']),
                                        timeout_s)
        return Channel(context.wrap_socket(sock))
    except (OSError, ValueError, KeyError, TypeError) as e:
        raise ChannelError('the other host cannot be reached: %s' % e)


def _listen(address, ports):
    family = socket.AF_INET6 if ':' in address else socket.AF_INET
    for port in ports:
        sock = socket.socket(family, socket.SOCK_STREAM)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind((address, port))
            sock.listen(_GREETINGS)
            return sock
        except OSError as e:
            sock.close()
            reason = e
    raise ChannelError('no free port of %d to %d on %s: %s'
                       % (ports[0], ports[-1], address, reason))

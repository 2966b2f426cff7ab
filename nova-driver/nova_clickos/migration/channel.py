# SPDX-License-Identifier: Apache-2.0
"""One encrypted connection between two hosts, for one guest that moves.

The target makes a certificate and a token for each move. Nova carries both to
the source. So the hosts need no keys of their own and trust each other for
this move only.
"""

import contextlib
import datetime
import hmac
import json
import os
import secrets
import socket
import ssl
import tempfile
import time

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives import serialization
from cryptography import x509
from cryptography.x509 import oid
from oslo_log import log as logging

LOG = logging.getLogger(__name__)

#: The longest message in bytes: configurations and tables of a guest.
MAX_MESSAGE = 32 << 20
_TOKEN_BYTES = 32
#: Seconds that a stranger may take for its greeting.
_GREETING_S = 3
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
            message = json.loads(line)
        except (ValueError, RecursionError):
            message = None
        if not isinstance(message, dict):
            raise ChannelError('a message that is no object of JSON')
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

    def __init__(self, address, ports):
        """Listen.

        :param address: of this host.
        :param ports: range of TCP ports.
        :raises: ChannelError if none is free
        """
        self._token = secrets.token_hex(_TOKEN_BYTES)
        key, self._certificate = _make_certificate()
        self._context = _server_context(key, self._certificate)
        self._sock = _listen(address, ports)
        self._address = address
        self._sock.settimeout(1)

    def invitation(self):
        """:returns: what connect() needs, text for Nova to carry"""
        return json.dumps({
            'address': self._address, 'port': self._sock.getsockname()[1],
            'token': self._token, 'certificate': self._certificate})

    def accept(self, is_over):
        """Wait for the source.

        :param is_over: says that the guest is no longer expected
        :returns: Channel, None if it is over
        """
        while not is_over():
            with contextlib.suppress(TimeoutError):
                sock, _ = self._sock.accept()
                channel = self._greeted(sock)
                if channel is not None:
                    return channel
        return None

    def _greeted(self, sock):
        sock.settimeout(_GREETING_S)
        try:
            channel = Channel(self._context.wrap_socket(
                sock, server_side=True))
            token = channel.receive(_GREETING_S, most=1024).get('token')
            if hmac.compare_digest(str(token), self._token):
                return channel
        except (OSError, ChannelError, TypeError) as e:
            LOG.warning('A stranger at the migration port: %s', e)
        sock.close()
        return None

    def close(self):
        """Listen no more."""
        self._sock.close()


def connect(invitation, timeout_s):
    """Connect to the target that made an invitation.

    :returns: Channel
    :raises: ChannelError
    """
    try:
        found = json.loads(invitation)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.check_hostname = False  # the certificate itself is known
        context.load_verify_locations(cadata=found['certificate'])
        sock = socket.create_connection((found['address'], found['port']),
                                        timeout_s)
        channel = Channel(context.wrap_socket(sock))
        channel.send({'token': found['token']})
    except (OSError, ValueError, KeyError, TypeError) as e:
        raise ChannelError('the other host cannot be reached: %s' % e)
    return channel


def _listen(address, ports):
    family = socket.AF_INET6 if ':' in address else socket.AF_INET
    for port in ports:
        sock = socket.socket(family, socket.SOCK_STREAM)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind((address, port))
            sock.listen(4)
            return sock
        except OSError as e:
            sock.close()
            reason = e
    raise ChannelError('no free port of %d to %d on %s: %s'
                       % (ports[0], ports[-1], address, reason))


def _make_certificate():
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(oid.NameOID.COMMON_NAME, 'clickos')])
    now = datetime.datetime.now(datetime.timezone.utc)
    day = datetime.timedelta(days=1)  # clocks of two hosts differ
    certificate = x509.CertificateBuilder(
        name, name, key.public_key(), x509.random_serial_number(),
        now - day, now + day).add_extension(
            x509.BasicConstraints(ca=True, path_length=0),
            critical=True).sign(key, hashes.SHA256())
    pem = serialization.Encoding.PEM
    return (key.private_bytes(
        pem, serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption()),
        certificate.public_bytes(pem).decode('ascii'))


def _server_context(key, certificate):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    # The module ssl reads keys from files only.
    descriptor, path = tempfile.mkstemp(prefix='clickos-')
    try:
        with os.fdopen(descriptor, 'wb') as f:
            f.write(certificate.encode('ascii') + key)
        context.load_cert_chain(path)
    finally:
        os.unlink(path)
    return context

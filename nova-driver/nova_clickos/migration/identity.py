# SPDX-License-Identifier: Apache-2.0
"""A key for one move, and whom it lets a host trust."""

import datetime
import os
import ssl
import tempfile

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives import serialization
from cryptography import x509
from cryptography.x509 import oid


class Identity:
    """A key that stays in this process, and its certificate."""

    def __init__(self):
        key = ec.generate_private_key(ec.SECP256R1())
        self._key = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption())
        #: text that may be shown
        self.certificate = _certificate(key).public_bytes(
            serialization.Encoding.PEM).decode('ascii')

    def load(self, context):
        """Let a context prove that it has the key."""
        # The module ssl reads keys from files only.
        descriptor, path = tempfile.mkstemp(prefix='clickos-')
        try:
            with os.fdopen(descriptor, 'wb') as f:
                f.write(self.certificate.encode('ascii') + self._key)
            context.load_cert_chain(path)
        finally:
            os.unlink(path)


def context(protocol, own, other):
    """Make a context that takes part for `own` and trusts `other` only.

    :param protocol: ssl.PROTOCOL_TLS_SERVER or ssl.PROTOCOL_TLS_CLIENT.
    :param own: Identity.
    :param other: certificate of the other side, text
    :raises: SSLError, ValueError, TypeError if that is no certificate
    """
    made = ssl.SSLContext(protocol)
    made.minimum_version = ssl.TLSVersion.TLSv1_3
    made.check_hostname = False     # the certificate itself is known
    made.verify_mode = ssl.CERT_REQUIRED
    made.load_verify_locations(cadata=other)
    own.load(made)
    return made


def _certificate(key):
    name = x509.Name([x509.NameAttribute(oid.NameOID.COMMON_NAME, 'clickos')])
    now = datetime.datetime.now(datetime.timezone.utc)
    day = datetime.timedelta(days=1)    # clocks of two hosts differ
    return x509.CertificateBuilder(
        name, name, key.public_key(), x509.random_serial_number(),
        now - day, now + day).add_extension(
            x509.BasicConstraints(ca=True, path_length=0),
            critical=True).sign(key, hashes.SHA256())

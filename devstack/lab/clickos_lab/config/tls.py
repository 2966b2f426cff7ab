# SPDX-License-Identifier: Apache-2.0
"""TLS before HTTP and the message queue, if the lab was started with it.

One certificate for 127.0.0.1, from an authority that forgets its key at
once. Services, clients and the browser trust this authority only.
"""

import base64
import datetime
import hashlib
import ipaddress
import os

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives import serialization
from cryptography import x509
from cryptography.x509 import oid

_LIFE = datetime.timedelta(days=3650)
#: The accounts that show the certificate.
_SERVERS = ('front', 'rabbitmq')


def write(site):
    """Make the authority and the certificate, once; remove what is unused."""
    files = [site.state.authority, certificate(site.state),
             *(key(site.state, name) for name in _SERVERS)]
    if site.settings.authority:
        if not all(path.exists() for path in files):
            _make(site)
        return
    for path in files:
        path.unlink(missing_ok=True)


def certificate(state):
    """Return the certificate of all servers."""
    return state.etc / 'tls/server.pem'


def key(state, account):
    """Return an account's copy of the certificate's key."""
    return state.etc / f'tls/{account}.key'


def pin(state):
    """Return SHA-256 of the certificate's key in base64, as RFC 7469."""
    found = x509.load_pem_x509_certificate(certificate(state).read_bytes())
    key_ = found.public_key().public_bytes(
        serialization.Encoding.DER,
        serialization.PublicFormat.SubjectPublicKeyInfo)
    return base64.b64encode(hashlib.sha256(key_).digest()).decode()


def _make(site):
    ours, theirs = (ec.generate_private_key(ec.SECP256R1()) for _ in '12')
    ca = _name('ClickOS lab')
    root = _signed(ca, ca, ours.public_key(), ours, (
        x509.BasicConstraints(ca=True, path_length=0), True))
    address = x509.IPAddress(ipaddress.ip_address('127.0.0.1'))
    names = x509.SubjectAlternativeName([address, x509.DNSName('localhost')])
    server = _signed(_name('127.0.0.1'), ca, theirs.public_key(), ours,
                     (names, False))
    private = theirs.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption()).decode()
    for account in _SERVERS:
        site.write(f'tls/{account}.key', private, account)
    for path, made in ((site.state.authority, root),
                       (certificate(site.state), server)):
        text = made.public_bytes(serialization.Encoding.PEM).decode()
        os.chmod(site.write(path.relative_to(site.state.etc), text), 0o644)


def _name(text):
    return x509.Name([x509.NameAttribute(oid.NameOID.COMMON_NAME, text)])


def _signed(subject, issuer, public, signer, *extensions):
    now = datetime.datetime.now(datetime.timezone.utc)
    made = (x509.CertificateBuilder()
            .subject_name(subject).issuer_name(issuer).public_key(public)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(days=1))
            .not_valid_after(now + _LIFE))
    for extension, is_critical in extensions:
        made = made.add_extension(extension, is_critical)
    return made.sign(signer, hashes.SHA256())

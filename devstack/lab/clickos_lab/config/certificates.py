# SPDX-License-Identifier: Apache-2.0
"""The lab's certificate and its authority, from the package cryptography."""

import base64
import datetime
import hashlib
import ipaddress

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives import serialization
from cryptography import x509
from cryptography.x509 import oid

_LIFE = datetime.timedelta(days=3650)


def pin(certificate):
    """Return SHA-256 of a certificate's key in base64, as RFC 7469.

    :param certificate: bytes, PEM
    """
    found = x509.load_pem_x509_certificate(certificate)
    key = found.public_key().public_bytes(
        serialization.Encoding.DER,
        serialization.PublicFormat.SubjectPublicKeyInfo)
    return base64.b64encode(hashlib.sha256(key).digest()).decode()


def make():
    """Make an authority and the certificate of 127.0.0.1 that it signs.

    :returns: authority, certificate and the certificate's private key, PEM
    """
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
        serialization.NoEncryption())
    return tuple(pem.decode() for pem in (
        *(made.public_bytes(serialization.Encoding.PEM)
          for made in (root, server)), private))


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

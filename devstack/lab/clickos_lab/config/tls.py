# SPDX-License-Identifier: Apache-2.0
"""TLS before HTTP and the message queue, if the lab was started with it.

One certificate for 127.0.0.1, from an authority that forgets its key at
once. Services, clients and the browser trust this authority only.
"""

import os

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
    from clickos_lab.config import certificates
    return certificates.pin(certificate(state).read_bytes())


def _make(site):
    # needs the virtual environment, which commands that stop a lab lack
    from clickos_lab.config import certificates
    root, server, private = certificates.make()
    for account in _SERVERS:
        site.write(f'tls/{account}.key', private, account)
    for path, text in ((site.state.authority, root),
                       (certificate(site.state), server)):
        os.chmod(site.write(path.relative_to(site.state.etc), text), 0o644)

# SPDX-License-Identifier: Apache-2.0
"""The message queue as a client sees it."""

import ssl

from clickos_lab import errors


def is_read(settings, user, vhost, queue):
    """Return whether a server reads a queue, so that calls get an answer."""
    try:
        import amqp    # in the virtual environment
    except ImportError as e:
        raise errors.LabError(f'amqp: not in this environment: {e}') from e
    tls = {'ca_certs': settings.authority, 'cert_reqs': ssl.CERT_REQUIRED,
           'server_hostname': '127.0.0.1'} if settings.authority else False
    try:
        with amqp.Connection(
                f'127.0.0.1:{settings.ports["rabbit"]}', user,
                settings.passwords[f'rabbit_{user}'], virtual_host=vhost,
                ssl=tls, connect_timeout=10, read_timeout=10) as connection:
            found = connection.channel().queue_declare(queue, passive=True)
            return found.consumer_count > 0
    except (amqp.AMQPError, OSError):
        return False

# SPDX-License-Identifier: Apache-2.0
"""One turn at a time for each user, for what takes long.

Horizon answers all users with a few processes. A user who asks again and
again holds one of their threads at most. A turn is a socket's name in Linux,
which one process of the host can have, and which ends with that process. So
the turns need no cache that the processes share.
"""

import contextlib
import socket

from django.utils import crypto

_SALT = 'clickos_dashboard.guests.turns'


class Busy(Exception):
    """Another turn of the user has not ended."""


@contextlib.contextmanager
def turn(request):
    """Hold the turn of the request's user.

    :raises Busy: if another request of the user holds it
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as place:
        try:
            place.bind(_name(request.user.id))
        except OSError:
            raise Busy()
        yield


def _name(user_id):
    """Return an abstract name that no other local user can guess."""
    digest = crypto.salted_hmac(_SALT, str(user_id), algorithm='sha256')
    return f'\0clickos-turn-{digest.hexdigest()}'

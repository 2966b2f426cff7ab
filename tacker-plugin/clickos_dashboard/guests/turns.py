# SPDX-License-Identifier: Apache-2.0
"""One turn at a time for each user, for what takes long.

Horizon answers all users with a few processes. A user who asks again and
again holds one of their threads at most. A turn is a lock on a byte of a
file, which the kernel ends with its process. So the turns need no cache that
the processes share.

The file is Horizon's alone. A name in Linux that needs no file would be shown
to all local users in /proc/net/unix, and each of them could take it.
"""

import contextlib
import fcntl
import os
import stat
import struct
import tempfile

from django.utils import crypto

_SALT = 'clickos_dashboard.guests.turns'
#: Names of the file. A local user can take one that he saw before a reboot.
_MOST_NAMES = 64
_FLAGS = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
#: struct flock of Linux: type, whence, start, length, process.
_LOCK = struct.Struct('hhqqi4x')


class Busy(Exception):
    """Another turn of the user has not ended."""


@contextlib.contextmanager
def turn(request):
    """Hold the turn of the request's user.

    :raises Busy: if another request of the user holds it
    """
    place = int(_digest(request.user.id)[:15], 16)
    lock = _LOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, place, 1, 0)
    with os.fdopen(_file(), 'r+b', buffering=0) as file:
        try:
            # A lock of this opened file holds between threads, too.
            fcntl.fcntl(file, fcntl.F_OFD_SETLK, lock)
        except OSError:
            raise Busy()
        yield


def _file():
    """Open the file that all processes of Horizon have, and no other user has.

    :raises Busy: if other local users have taken all names
    """
    for number in range(_MOST_NAMES):
        name = f'clickos-turns-{_digest(number)}'
        path = os.path.join(tempfile.gettempdir(), name)
        with contextlib.suppress(OSError):
            file = os.open(path, _FLAGS, 0o600)
            if _is_private(os.fstat(file)):
                return file
            os.close(file)
    raise Busy()


def _is_private(status):
    return (stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid()
            and not status.st_mode & 0o077)


def _digest(text):
    """Return what no other local user can guess."""
    return crypto.salted_hmac(_SALT, str(text),
                              algorithm='sha256').hexdigest()

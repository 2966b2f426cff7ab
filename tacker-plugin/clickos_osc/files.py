# SPDX-License-Identifier: Apache-2.0
"""Files that commands read."""

import sys

from osc_lib import exceptions

#: More than any limit of a guest or of clickos-api.
_MAX_TEXT_BYTES = 1024 * 1024


def text(path):
    """Return the text of a file; - is standard input.

    :raises exceptions.CommandError: that names the file
    """
    raw = content(path, _MAX_TEXT_BYTES, 'a text')
    try:
        return raw.decode()
    except UnicodeDecodeError as exc:
        raise exceptions.CommandError(
            f'{path}: byte {exc.start} is not UTF-8')


def content(path, limit, what):
    """Return the bytes of a file; - is standard input.

    :param limit: most bytes
    :param what: what the limit is for, for the message
    """
    try:
        if path == '-':
            found = sys.stdin.buffer.read(limit + 1)
        else:
            with open(path, 'rb') as source:
                found = source.read(limit + 1)
    except OSError as exc:
        raise exceptions.CommandError(f'{path}: {exc.strerror}')
    if len(found) > limit:
        raise exceptions.CommandError(
            f'{path}: more than {limit} bytes, the limit of {what}')
    return found

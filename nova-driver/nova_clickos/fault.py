# SPDX-License-Identifier: Apache-2.0
"""Reasons that fit into a server's fault."""

import re

#: Nova cuts the message of a fault to these bytes.
MAX_BYTES = 255
#: A guest counts so the lines that did not fit into its own report.
_COUNTED = re.compile(r'\((\d+) more\)')
_COUNT = '\nand %d more'
_CUT = '...'


def fitted(text):
    """Return a text of lines that Nova keeps whole.

    Lines that do not fit are counted at the end, as "and 3 more". A first
    line that is too long is cut.
    """
    if len(text.encode()) <= MAX_BYTES:
        return text
    lines = text.splitlines()
    counted = _COUNTED.fullmatch(lines[-1])
    left = int(counted[1]) if counted else 0
    lines = lines[:-1] if counted else lines
    for kept in range(len(lines), 0, -1):
        shown = '\n'.join(lines[:kept]) + _more(len(lines) - kept + left)
        if len(shown.encode()) <= MAX_BYTES:
            return shown
    more = _more(len(lines) - 1 + left)
    room = MAX_BYTES - len((_CUT + more).encode())
    return lines[0].encode()[:room].decode(errors='ignore') + _CUT + more


def _more(count):
    return _COUNT % count if count else ''

# SPDX-License-Identifier: Apache-2.0
"""Gives the flows of a guest that goes to guests that stay (docs/adr/0090).

An element that has flows says so by the handler ``merge``. It reads flows
from ``state``, part by part, and opens no flow after a write to ``hold``.
"""

import itertools
import time

_MERGE = '.merge'
#: The ends of handlers that give() writes.
WRITTEN = (_MERGE, '.hold')
#: Guests that may get the flows of one: more are not in a hop.
MAX_TAKERS = 16
#: How long the giver opens no flow, and how long giving may take.
_HOLD_S, _LIMIT_S = 60, 20
#: Bytes of one write, unless a part has more. A guest of 8 MiB takes it.
_BYTES = 64 * 1024


class FlowsError(Exception):
    """Not all flows could be given."""


def give(giver, takers):
    """Let guests go on with the flows of another one; return their number.

    The giver keeps its flows and opens no further ones for a minute, so it
    may be done again. Each taker gets all flows, since a switch spreads them
    over all takers. A taker keeps what it heard of later.

    :param giver: has name, list(), read(element, part) of flows, and
        write(writes) of the handlers WRITTEN
    :param takers: the same
    :raises FlowsError: if a taker has other elements, or there is too much
    """
    elements = _elements(giver)
    for taker in takers:
        if missing := sorted(elements - _elements(taker)):
            raise FlowsError(f'guest {taker.name}: {missing[0]}: no element'
                             ' that takes flows')
    if not elements:
        return 0
    end_s = time.monotonic() + _LIMIT_S
    giver.write([[f'{element}.hold', str(_HOLD_S)]
                 for element in sorted(elements)])
    given = 0
    for element in sorted(elements):
        for head, lines in _pieces(_parts(giver, element)):
            if time.monotonic() > end_s:
                raise FlowsError(f'guest {giver.name}: {given} flows were'
                                 f' given in {_LIMIT_S} s, the limit')
            for taker in takers:
                taker.write([[element + _MERGE, head + ''.join(lines)]])
            given += len(lines)
    return given


def _elements(guest):
    """Return the names of a guest's elements that have flows."""
    return {name.removesuffix(_MERGE) for name in guest.list()
            if name.endswith(_MERGE)}


def _parts(guest, element):
    """Read an element's flows, each part as head and lines."""
    for number in itertools.count():
        part = guest.read(element, number)
        if not part:
            return
        head, *lines = part.splitlines(keepends=True)
        yield head, lines


def _pieces(parts):
    """Join parts to writes of a good size."""
    piece, size = [], 0
    head = ''
    for head, lines in parts:
        more = sum(map(len, lines))
        if piece and size + more > _BYTES:
            yield head, piece
            piece, size = [], 0
        piece += lines
        size += more
    if piece:
        yield head, piece

# SPDX-License-Identifier: Apache-2.0
"""Transfers flows of a guest that goes to those that stay (docs/adr/0090).

An element that has flows says so by the handler ``block_new_flows``, after
which it opens no flow. Flows are read from ``state``, part by part, and
written to ``merge``.

A chain fuses into one guest in the same way (docs/adr/0081).
"""

import time

_MERGE, _BLOCK = '.merge', '.block_new_flows'
#: The name of the second one in guests, and for agents, of before 1.0.
_EARLIER = '.hold'
#: The ends of handlers that transfer() writes.
WRITTEN = (_MERGE, _BLOCK, _EARLIER)
#: Guests that may get the flows of one: more are not in a hop.
MAX_TARGETS = 16
#: How long the source opens no flow, and after which time of a transfer no
#: guest is asked any more.
_BLOCK_S, _LIMIT_S = 60, 20
#: Parts of an element's flows. The largest table has fewer, of 256 flows each.
_PARTS = 65536
#: Bytes of one write, unless a part has more. A guest of 8 MiB takes it.
_BYTES = 64 * 1024


class FlowsError(Exception):
    """Not all flows could be transferred."""


def transfer(source, targets):
    """Let guests go on with the flows of another one; return their number.

    The source keeps its flows and opens no further ones for a minute, so it
    may be done again. Each target gets all flows, since a switch spreads them
    over all targets. A target keeps what it heard of later, and opens flows
    again if it transferred its own before.

    :param source: has name, list(), read(element, part) of flows, and
        write(writes) of the handlers WRITTEN
    :param targets: the same
    :raises FlowsError: if a target has other elements, or there is too much
    """
    end_s = time.monotonic() + _LIMIT_S
    return _transfer(_Timed(source, end_s),
                     [_Timed(each, end_s) for each in targets])


def _transfer(source, targets):
    elements = _elements(source)
    own = [_elements(target) for target in targets]
    for target, found in zip(targets, own):
        if missing := sorted(elements.keys() - found.keys()):
            raise FlowsError(f'guest {target.name}: {missing[0]}: no element'
                             ' that takes flows')
    if not elements:
        return 0
    source.write([[elements[element], str(_BLOCK_S)]
                 for element in sorted(elements)])
    count = 0
    for element in sorted(elements):
        for head, lines in _pieces(_parts(source, element)):
            for target in targets:
                target.write([[element + _MERGE, head + ''.join(lines)]])
            count += len(lines)
    for target, found in zip(targets, own):
        target.write([[found[element], '0'] for element in sorted(elements)])
    return count


def for_earlier_agents(writes):
    """Return writes as agents of before 1.0 let them through."""
    return [[name.removesuffix(_BLOCK) + _EARLIER
             if name.endswith(_BLOCK) else name, value]
            for name, value in writes]


class _Timed:
    """A guest that is asked nothing after a time.

    Guests decide how many answers there are, so each request checks it.

    :param end_s: of time.monotonic()
    """

    def __init__(self, guest, end_s):
        self.name = guest.name
        self._guest, self._end_s = guest, end_s

    def list(self):
        """Return the names of the handlers."""
        return self._in_time().list()

    def read(self, element, part):
        """Read a part of an element's flows."""
        return self._in_time().read(element, part)

    def write(self, writes):
        """Write handlers."""
        self._in_time().write(writes)

    def _in_time(self):
        if time.monotonic() > self._end_s:
            raise FlowsError(f'guest {self.name}: not all flows were'
                             f' transferred in {_LIMIT_S} s, the limit')
        return self._guest


class Part:
    """A hop of a fused guest, as a guest of its own.

    :param guest: the fused guest, as transfer() takes it
    :param prefix: of the names of the hop's elements, such as 'fw/'
    """

    def __init__(self, guest, prefix):
        self.name = guest.name
        self._guest, self._prefix = guest, prefix

    def list(self):
        """Return the names of the hop's handlers."""
        return [name.removeprefix(self._prefix)
                for name in self._guest.list()
                if name.startswith(self._prefix)]

    def read(self, element, part):
        """Read a part of an element's flows."""
        return self._guest.read(self._prefix + element, part)

    def write(self, writes):
        """Write handlers."""
        self._guest.write([[self._prefix + name, value]
                           for name, value in writes])


def _elements(guest):
    """Return a guest's elements that have flows, with their blocking handler.

    A guest of 1.0 has it by both names, an earlier one by the old name.
    """
    names = guest.list()
    return {name.removesuffix(end): name for end in (_EARLIER, _BLOCK)
            for name in names if name.endswith(end)}


def _parts(guest, element):
    """Read an element's flows, each part as head and lines.

    A part of the table without flows has no lines; others may follow it.
    """
    for number in range(_PARTS):
        part = guest.read(element, number)
        if not part:
            return
        head, *lines = part.splitlines(keepends=True)
        yield head, lines
    raise FlowsError(f'guest {guest.name}: {element}: more than {_PARTS} parts'
                     ' of flows, the limit')


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

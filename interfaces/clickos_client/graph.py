# SPDX-License-Identifier: Apache-2.0
"""The graph of a running router: what the handler ``graph`` answers.

docs/control-protocol.md has the format. A guest wrote the text, so parse
checks each line.
"""

import dataclasses

HANDLER = 'graph'
_NS_PER_S = 1_000_000_000
#: Lines that a router within the engine's limits can have.
LINES_MAX = 20_000


@dataclasses.dataclass(frozen=True)
class Element:
    """An element and the packets that it freed and did not send."""

    name: str
    kind: str
    drops: int


@dataclasses.dataclass(frozen=True)
class Connection:
    """A connection; origin and target are (element name, port)."""

    origin: tuple
    target: tuple
    pull: bool
    packets: int
    bytes: int


@dataclasses.dataclass(frozen=True)
class Graph:
    """One answer.

    :ivar watched_ns: nanoseconds since the counts began
    """

    watched_ns: int
    elements: tuple
    connections: tuple


@dataclasses.dataclass(frozen=True)
class Rate:
    """Packets and bits a second on a connection."""

    packets_s: float = 0.0
    bits_s: float = 0.0


def parse(text):
    """Return the Graph of an answer.

    :raises ValueError: place and reason, if the text is no such answer
    """
    lines = text.splitlines()
    if len(lines) > LINES_MAX:
        raise ValueError(f'graph: {len(lines)} lines, the limit is'
                         f' {LINES_MAX}')
    watched, elements, connections = None, {}, []
    for number, line in enumerate(lines, 1):
        try:
            match line.split(' '):
                case ['watched_ns', count]:
                    watched = _number(count)
                case ['element', name, kind, drops]:
                    elements[_word(name)] = Element(
                        name, _word(kind), _number(drops))
                case ['connection', *fields]:
                    connections.append(_connection(fields, elements))
                case _:
                    raise ValueError('neither watched_ns, element nor'
                                     ' connection')
        except ValueError as exc:
            raise ValueError(f'graph:{number}: {exc}') from None
    if watched is None:
        raise ValueError('graph: no line watched_ns')
    return Graph(watched, tuple(elements.values()), tuple(connections))


def rates(before, after):
    """Return the Rate of each connection between two answers, in order.

    :returns: [Rate]; None if the counts began again between the answers or
        the router is another one
    """
    elapsed = (after.watched_ns - before.watched_ns) / _NS_PER_S
    ends = [(c.origin, c.target) for c in after.connections]
    if elapsed <= 0 or ends != [(c.origin, c.target)
                                for c in before.connections]:
        return None
    pairs = zip(before.connections, after.connections)
    return [Rate((new.packets - old.packets) / elapsed,
                 (new.bytes - old.bytes) * 8 / elapsed)
            for old, new in pairs]


def _connection(fields, elements):
    if len(fields) != 7 or fields[4] not in ('push', 'pull'):
        raise ValueError('a connection has FROM PORT TO PORT push|pull'
                         ' PACKETS BYTES')
    origin, target = fields[0], fields[2]
    for name in (origin, target):
        if name not in elements:
            raise ValueError(f'no element {ascii(name)} above this line')
    return Connection((origin, _number(fields[1])),
                      (target, _number(fields[3])), fields[4] == 'pull',
                      _number(fields[5]), _number(fields[6]))


def _word(text):
    if not text or not text.isprintable():
        raise ValueError(f'{ascii(text)} is not a name')
    return text


def _number(text):
    if not (text.isascii() and text.isdigit() and len(text) <= 20):
        raise ValueError(f'{ascii(text[:20])} is not a number below 10^20')
    return int(text)

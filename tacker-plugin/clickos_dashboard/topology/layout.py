# SPDX-License-Identifier: Apache-2.0
"""Where networks, VNFs and chains stand in the picture.

A network is a lane from top to bottom. A VNF stands right of the first lane
that it has a port on, and its connection points lead to their lanes. A VNF
below another one begins where that one ends, so edges pass no box.
"""

import dataclasses

#: Lanes that are drawn. A table has the connection points of the others.
MOST_LANES = 12
_MARGIN = 16
_BOX_WIDTH = 160
_EDGE = 125
_GAP = _BOX_WIDTH + 2 * _EDGE
_HEAD = 50
_ROW = 64
#: From the top of a row to its edge.
_RISE = 24
#: Chains that a box names, and those whose arrows are drawn.
_MOST_BADGES = 3
MOST_CHAINS = 24
_BADGE = 20
_BETWEEN = 34
_LABEL = 26
_TOP = _LABEL + 30
#: Names of the styles of lanes and of chains in clickos.css.
COLORS = 6


@dataclasses.dataclass(frozen=True)
class Lane:
    """A network: its place and the number of its color."""

    network: object
    x: int
    color: int
    width: int = _BOX_WIDTH
    room: int = _BOX_WIDTH - 16

    @property
    def left(self):
        """Return where its name begins."""
        return self.x - self.width // 2


@dataclasses.dataclass(frozen=True)
class Edge:
    """A connection point, from its box to its lane.

    :ivar left: where its words begin
    :ivar key: tells one from the others of the page
    """

    point: object
    key: str
    x: int
    y: int
    lane: Lane
    left: int
    room: int = _EDGE - 18


@dataclasses.dataclass(frozen=True)
class Badge:
    """The place of a VNF in a chain, as words in its box."""

    place: object
    y: int
    color: int


@dataclasses.dataclass(frozen=True)
class Box:
    """A VNF."""

    node: object
    x: int
    y: int
    height: int
    edges: tuple
    badges: tuple
    width: int = _BOX_WIDTH
    room: int = _BOX_WIDTH - 20

    @property
    def middle(self):
        """Return the x coordinate of its middle."""
        return self.x + self.width // 2


@dataclasses.dataclass(frozen=True)
class Arrow:
    """The way from a hop of a chain to the next one, as a path of SVG.

    :ivar number: that of the next hop
    :ivar x: where its words begin, right of its middle
    """

    chain: object
    color: int
    path: str
    number: int
    x: int
    y: int


@dataclasses.dataclass(frozen=True)
class Picture:
    """All of it."""

    width: int
    height: int
    lanes: tuple
    boxes: tuple
    arrows: tuple
    lane_top: int = _TOP - 30 + _LABEL


def draw(nodes):
    """Return the Picture of Nodes, in their order."""
    order = _lanes(nodes)[:MOST_LANES]
    lanes = {network: Lane(network, _MARGIN + _BOX_WIDTH // 2 + at * _GAP,
                           at % COLORS)
             for at, network in enumerate(order)}
    chains = colored(nodes)
    colors = {chain.id: color for chain, color in chains}
    ends, boxes = {}, []
    for number, node in enumerate(nodes):
        boxes.append(_box(node, number, lanes, order, ends, colors))
    height = max(ends.values(), default=_TOP) + _MARGIN
    right = [box.x + box.width for box in boxes] + [
        lane.x + _BOX_WIDTH // 2 for lane in lanes.values()]
    return Picture(max(right, default=0) + _MARGIN, height,
                   tuple(lanes.values()), tuple(boxes),
                   tuple(_arrows(boxes, chains[:MOST_CHAINS])))


def colored(nodes):
    """Return (chain, number of its color) of the chains of Nodes."""
    # A chain is hashed with all its hops.
    found = {place.chain.id: place.chain for node in nodes
             for place in node.places}
    return [(chain, at % COLORS) for at, chain in enumerate(found.values())]


def _lanes(nodes):
    """Return the networks, those of a VNF next to each other if possible."""
    near = {}
    for node in nodes:
        for network in node.networks:
            near.setdefault(network, {})
            for other in node.networks - {network}:
                near[network][other] = near[network].get(other, 0) + 1
    found = {}
    # An end of a row of networks comes first.
    for start in sorted(near, key=lambda n: (len(near[n]), n.name, n.id)):
        here = start
        while here is not None and here not in found:
            found[here] = True
            here = min((n for n in near[here] if n not in found),
                       key=lambda n: (-near[here][n], n.name, n.id),
                       default=None)
    return list(found)


def _box(node, number, lanes, order, ends, colors):
    """Place a VNF below those that stand there.

    :param ends: {gap between lanes: y coordinate where it is free}
    """
    points = [(order.index(point.network), at, point)
              for at, point in enumerate(node.points)
              if point.network in lanes]
    first = min((lane for lane, *_ in points), default=0)
    last = max((lane for lane, *_ in points), default=0)
    gaps = range(first, max(first + 1, last))
    y = max(ends.get(gap, _TOP) for gap in gaps)
    x = lanes[order[first]].x + _EDGE if order else _MARGIN
    sides = ([p for p in points if p[0] <= first],
             [p for p in points if p[0] > first])
    badges = tuple(
        Badge(place, y + _HEAD + _BADGE * row + 10, colors[place.chain.id])
        for row, place in enumerate(node.places[:_MOST_BADGES]))
    head = _HEAD + _BADGE * len(badges)
    edges = tuple(
        _edge(point, f'{number}-{at}', lanes[order[lane]],
              x + _BOX_WIDTH * side, y + head + _ROW * row + _RISE, side)
        for side, found in enumerate(sides)
        for row, (lane, at, point) in enumerate(found))
    height = head + _ROW * max(map(len, sides))
    for gap in gaps:
        ends[gap] = y + height + _BETWEEN
    return Box(node, x, y, height, edges, badges)


def _edge(point, key, lane, x, y, side):
    left = x + 8 if side else x - _EDGE + 10
    return Edge(point, key, x, y, lane, left)


def _arrows(boxes, chains):
    """Yield the arrows of chains, those of each in order.

    :param chains: (chain, color) of each
    """
    of_chain = {chain.id: {} for chain, _color in chains}
    for box in boxes:
        for place in box.node.places:
            if place.chain.id in of_chain:
                of_chain[place.chain.id].setdefault(place.number, box)
    for at, (chain, color) in enumerate(chains):
        hops = of_chain[chain.id]
        numbers = sorted(hops)
        for before, after in zip(numbers, numbers[1:]):
            path, (x, y) = _path(hops[before], hops[after], 12 * (at % 5))
            yield Arrow(chain, color, path, after, x + 9, y)


def _path(start, end, shift):
    """Return a curve from a box to another one, and its middle."""
    if abs(start.x - end.x) > _BOX_WIDTH:
        return _path_across(start, end, shift)
    is_down = end.y > start.y
    x, y = start.middle + shift, start.y + start.height
    if is_down and end.y - y <= _BETWEEN:
        to_x = end.middle + shift
        return (f'M{x} {y} L{to_x} {end.y}',
                ((x + to_x) // 2, (y + end.y) // 2))
    # Around the boxes between both, and below the words of edges.
    side = start.x - 18 - shift // 2
    from_y, to_y = start.y + start.height - 8, end.y + 12
    return _curve((start.x, from_y), (side - 20, from_y),
                  (side - 20, to_y), (end.x, to_y))


def _path_across(start, end, shift):
    y, to_y = start.y + 14 + shift // 2, end.y + 14 + shift // 2
    from_x, to_x = (start.x + start.width, end.x) if end.x > start.x \
        else (start.x, end.x + end.width)
    bend = (to_x - from_x) // 2
    return _curve((from_x, y), (from_x + bend, y), (to_x - bend, to_y),
                  (to_x, to_y))


def _curve(*points):
    """Return a cubic curve by its four points, and its middle."""
    (x, y), *others = points
    middle = tuple((a + 3 * b + 3 * c + d) // 8
                   for a, b, c, d in zip(*points))
    return f'M{x} {y} C' + ' '.join(f'{x} {y}' for x, y in others), middle

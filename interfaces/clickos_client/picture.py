# SPDX-License-Identifier: Apache-2.0
"""A picture of a router's graph, as SVG.

Packets flow from left to right. An element stands one column behind the
elements that send to it; connections that close a circle do not count.
"""

from xml.etree import ElementTree

_COLUMN_GAP = 70
_ROW_GAP = 24
_HEIGHT = 44
_LETTER = 7.2
_MARGIN = 16
_STYLE = """
text { font: 12px monospace; fill: #222 }
.class { fill: #666 }
.drops { fill: #a00; font-weight: bold }
rect { fill: #f4f7fa; stroke: #47617a }
path { fill: none; stroke: #789; stroke-width: 1.2 }
.hot path { stroke: #d2600a; stroke-width: 3 }
.warm path { stroke: #c9a227; stroke-width: 2 }
.pull path { stroke-dasharray: 5 3 }
.rate { font-size: 11px }
"""


def svg(graph, rates=None):
    """Return the picture of a Graph.

    :param rates: [Rate] of the connections, or None for none
    """
    boxes = _place(graph)
    width = max((x + w for x, _y, w in boxes.values()), default=0)
    height = max((y for _x, y, _w in boxes.values()), default=0) + _HEIGHT
    size = (round(width + 2 * _MARGIN), round(height + 2 * _MARGIN))
    root = ElementTree.Element('svg', {
        'xmlns': 'http://www.w3.org/2000/svg', 'role': 'img',
        'viewBox': f'{-_MARGIN} {-_MARGIN} {size[0]} {size[1]}',
        'width': str(size[0]), 'height': str(size[1])})
    ElementTree.SubElement(root, 'title').text = 'Graph of the router'
    ElementTree.SubElement(root, 'style').text = _STYLE
    top = max((r.packets_s for r in rates or ()), default=0)
    for index, connection in enumerate(graph.connections):
        rate = rates[index] if rates else None
        _draw_connection(root, boxes, connection, rate, top)
    for element in graph.elements:
        _draw_element(root, boxes[element.name], element)
    return ElementTree.tostring(root, encoding='unicode')


def si(number):
    """Return a number as people read rates: 950, 1.2 k, 13 M."""
    for unit in ('', ' k', ' M', ' G'):
        if number < 999.5 or unit == ' G':
            break
        number /= 1000
    return f'{number:.3g}{unit}' if number < 100 else f'{number:.0f}{unit}'


def columns(graph):
    """Return the column of each element: {name: number from 0 on}."""
    nexts = {e.name: [] for e in graph.elements}
    for c in graph.connections:
        nexts[c.origin[0]].append(c.target[0])
    order = _without_circles(nexts)
    column = dict.fromkeys(nexts, 0)
    position = {name: at for at, name in enumerate(order)}
    for name in order:
        for target in nexts[name]:
            if position[target] > position[name]:
                column[target] = max(column[target], column[name] + 1)
    return column


def _without_circles(nexts):
    """Return the names, senders first but for circles (depth first)."""
    done, seen = [], set()
    sources = set(nexts) - {t for targets in nexts.values() for t in targets}
    starts = [n for n in nexts if n in sources] + list(nexts)
    for start in starts:
        if start in seen:
            continue
        seen.add(start)
        stack = [(start, iter(nexts[start]))]
        while stack:
            name, rest = stack[-1]
            target = next((t for t in rest if t not in seen), None)
            if target is None:
                done.append(name)
                stack.pop()
            else:
                seen.add(target)
                stack.append((target, iter(nexts[target])))
    return done[::-1]


def _place(graph):
    """Return {name: (x, y, width)}."""
    in_column = {}
    for name, column in columns(graph).items():
        in_column.setdefault(column, []).append(name)
    kinds = {e.name: e.kind for e in graph.elements}
    senders = {}
    for c in graph.connections:
        senders.setdefault(c.target[0], []).append(c.origin[0])
    boxes, x = {}, 0
    for column in sorted(in_column):
        names = in_column[column]
        width = max(max(len(n), len(kinds[n])) for n in names) * _LETTER + 20

        def height_of_senders(name):
            known = [boxes[s][1] for s in senders.get(name, ())
                     if s in boxes]
            return sum(known) / len(known) if known else 0
        y = 0
        for name in sorted(names, key=height_of_senders):
            y = max(y, height_of_senders(name))
            boxes[name] = (x, y, width)
            y += _HEIGHT + _ROW_GAP
        x += width + _COLUMN_GAP
    return boxes


def _draw_element(root, box, element):
    x, y, width = box
    group = ElementTree.SubElement(root, 'g', {
        'class': 'element lossy' if element.drops else 'element'})
    ElementTree.SubElement(group, 'title').text = (
        f'{element.name} :: {element.kind}, {element.drops} drops')
    ElementTree.SubElement(group, 'rect', {
        'x': f'{x:.0f}', 'y': f'{y:.0f}', 'width': f'{width:.0f}',
        'height': str(_HEIGHT), 'rx': '4'})
    for at, text, kind in ((18, element.name, 'name'),
                           (35, element.kind, 'class')):
        # A page that shows the picture smaller cuts what has no room.
        _text(group, x + 10, y + at, text, kind).set(
            'data-room', f'{width - 14:.0f}')
    if element.drops:
        _text(group, x, y + _HEIGHT + 13, f'{si(element.drops)} drops',
              'drops')


def _draw_connection(root, boxes, connection, rate, top):
    x, y, width = boxes[connection.origin[0]]
    to_x, to_y = boxes[connection.target[0]][:2]
    start = (x + width, y + _HEIGHT / 2 + 5 * (connection.origin[1] % 4) - 5)
    end = (to_x, to_y + _HEIGHT / 2 + 5 * (connection.target[1] % 4) - 5)
    bend = max(_COLUMN_GAP / 2, abs(end[0] - start[0]) / 2)
    share = rate.packets_s / top if rate and top else 0
    heat = 'hot' if share > 0.5 else 'warm' if share > 0.05 else ''
    kind = 'pull' if connection.pull else 'push'
    group = ElementTree.SubElement(root, 'g',
                                   {'class': f'{kind} {heat}'.strip()})
    ElementTree.SubElement(group, 'title').text = (
        f'{connection.origin[0]} [{connection.origin[1]}] ->'
        f' [{connection.target[1]}] {connection.target[0]}:'
        f' {connection.packets} packets, {connection.bytes} bytes')
    ElementTree.SubElement(group, 'path', {
        'd': f'M{start[0]:.0f} {start[1]:.0f}'
             f' C{start[0] + bend:.0f} {start[1]:.0f}'
             f' {end[0] - bend:.0f} {end[1]:.0f}'
             f' {end[0]:.0f} {end[1]:.0f}'})
    if rate:
        # The words of further outputs stand below the first edge.
        rise = -5 + 17 * min(connection.origin[1], 3)
        _text(group, start[0] + 6, start[1] + rise, si(rate.packets_s),
              'rate')


def _text(parent, x, y, text, kind=None):
    attributes = {'x': f'{x:.0f}', 'y': f'{y:.0f}'}
    if kind:
        attributes['class'] = kind
    found = ElementTree.SubElement(parent, 'text', attributes)
    found.text = text
    return found

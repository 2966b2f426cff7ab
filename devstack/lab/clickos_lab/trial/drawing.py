# SPDX-License-Identifier: Apache-2.0
"""A picture of two terminals that play what was recorded, as SVG.

It begins with its end, so that a glance sees all lines. Programs that do not
animate SVG show the end only.
"""

import dataclasses
import html

COMMAND, OUTPUT, FAULT = 'command', 'output', 'fault'
_WIDTH, _LINE, _MARGIN, _HEAD = 800, 19, 16, 30
#: Lines of the ping that are seen at a time.
_SEEN = 8
#: Seconds that the end stays, also at first.
_REST_S = 5
_STYLE = """\
text { font: 13px 'DejaVu Sans Mono', Menlo, Consolas, monospace; \
white-space: pre; fill: #c9d1d9; }
.frame { fill: #0d1117; stroke: #30363d; }
.head { fill: #161b22; }
.title { fill: #8b949e; }
.command { fill: #ffffff; font-weight: bold; }
.fault { fill: #ff7b72; }
.good { fill: #7ee787; font-weight: bold; }
.blocked { fill: #ff7b72; }
@media (prefers-reduced-motion: reduce) { * { animation: none !important; } }
"""


@dataclasses.dataclass(frozen=True)
class Line:
    """A line of a terminal, and the second at which it was printed."""

    at_s: float
    text: str
    kind: str


class _Picture:
    """Elements, and a rule of animation for each that appears later."""

    def __init__(self, last_s):
        self._last_s, self._length_s = last_s, last_s + _REST_S
        self._rules = []
        self.parts = []

    def _name(self, steps, value):
        """Add the rule of an animation; return its class.

        :param steps: (second, value from then on)
        """
        name = f'a{len(self._rules)}'
        frames = ''.join(
            f'{100 * at_s / self._length_s:.2f}%{{{value(step)}}}'
            for at_s, step in steps)
        self._rules.append(
            f'@keyframes {name}{{{frames}}}\n'
            f'.{name}{{animation:{name} {self._length_s:.1f}s step-end '
            f'-{self._last_s:.1f}s infinite}}\n')
        return name

    def appearing(self, at_s):
        """Return the class of what is seen from a second on."""
        return self._name([(0, 0), (at_s, 1)], lambda v: f'opacity:{v}')

    def scrolling(self, steps):
        """Return the class of a group that moves up at some seconds."""
        return self._name([(0, 0), *steps],
                          lambda v: f'transform:translateY({-v}px)')

    def text(self, y, line, extra=''):
        """Add a line."""
        name = self.appearing(line.at_s)
        self.parts.append(
            f'<text x="{_MARGIN}" y="{y}" class="{line.kind} {extra} {name}">'
            f'{html.escape(line.text)}</text>')

    def frame(self, top, height, title):
        """Add an empty terminal."""
        self.parts += [
            f'<rect class="frame" x="0.5" y="{top + 0.5}" rx="6" '
            f'width="{_WIDTH - 1}" height="{height - 1}"/>',
            f'<rect class="head" x="1" y="{top + 1}" rx="6" '
            f'width="{_WIDTH - 2}" height="{_HEAD - 8}"/>',
            f'<text class="title" x="{_MARGIN}" y="{top + 16}">{title}</text>']

    def svg(self, height):
        """Return the whole document."""
        return '\n'.join((
            '<!-- SPDX-License-Identifier: Apache-2.0 -->',
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} '
            f'{height}" role="img" aria-labelledby="title">',
            '<title id="title">A rule is set and removed in a running '
            'firewall guest; a ping through it loses no packet</title>',
            f'<style>\n{_STYLE}{"".join(self._rules)}</style>',
            *self.parts, '</svg>', ''))


def draw(ping, shell):
    """Return the picture as SVG.

    :param ping: Lines of the terminal above, which scrolls
    :param shell: Lines of the terminal below
    """
    last_s = max(line.at_s for line in (*ping, *shell))
    picture = _Picture(last_s)
    above = _HEAD + _SEEN * _LINE + 8
    below = _HEAD + len(shell) * _LINE + 8
    picture.frame(0, above, 'a ping through the firewall; '
                  'red: a rule blocks HTTP')
    _scroll(picture, ping, _blocked(shell))
    picture.frame(above + 8, below, 'meanwhile')
    for number, line in enumerate(shell, 1):
        picture.text(above + 4 + _HEAD + number * _LINE, line)
    return picture.svg(above + 8 + below)


def _blocked(shell):
    """Return from when till when a rule blocks, by the commands' times."""
    writes = [line.at_s for line in shell
              if line.kind == COMMAND and 'fw.config' in line.text]
    return writes[0], writes[-1]


def _scroll(picture, ping, blocked):
    picture.parts.append(
        f'<clipPath id="pane"><rect x="0" y="{_HEAD - 1}" width="{_WIDTH}" '
        f'height="{_SEEN * _LINE + 2}"/></clipPath><g clip-path="url(#pane)">')
    steps = [(line.at_s, (number - _SEEN) * _LINE)
             for number, line in enumerate(ping, 1) if number > _SEEN]
    end = steps[-1][1] if steps else 0
    picture.parts.append(f'<g class="{picture.scrolling(steps)}" '
                         f'transform="translate(0 {-end})">')
    for number, line in enumerate(ping, 1):
        y = _HEAD - 6 + number * _LINE
        if blocked[0] <= line.at_s <= blocked[1]:
            picture.parts.append(
                f'<rect class="blocked {picture.appearing(line.at_s)}" x="6" '
                f'y="{y - 14}" width="4" height="{_LINE}"/>')
        picture.text(y, line, 'good' if '% packet loss' in line.text else '')
    picture.parts.append('</g></g>')

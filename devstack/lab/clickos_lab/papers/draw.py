# SPDX-License-Identifier: Apache-2.0
"""Draws measured figures: ``python -m clickos_lab.papers.draw FILE ...``.

Matplotlib draws; ``requirements-figures.txt`` pins it.
"""

import json
import pathlib
import sys

# Only make bench FIGURES=... installs requirements-figures.txt.
import matplotlib  # pylint: disable=import-error
from matplotlib import pyplot  # pylint: disable=import-error
from matplotlib import ticker  # pylint: disable=import-error

from clickos_lab import pictures

_SETTINGS = {
    'font.size': 9,
    'font.family': 'sans-serif', 'axes.grid': True, 'grid.alpha': 0.3}
_MARKS = 'osD^v<>p'
#: An axis whose values differ by more has a logarithmic scale.
_SPAN = 50


def draw(path):
    """Draw one figure next to its file."""
    made = json.loads(path.read_text())
    with matplotlib.rc_context(_SETTINGS):
        canvas, axes = pyplot.subplots(figsize=(6.4, 3.8))
        for mark, (line, points) in zip(_MARKS, made['lines'].items()):
            x, middle, least, most = zip(*points)
            axes.errorbar(
                x, middle, label=line, marker=mark, markersize=4, capsize=2,
                yerr=([m - low for m, low in zip(middle, least)],
                      [high - m for m, high in zip(middle, most)]))
        _scale(axes, made['lines'])
        axes.set(xlabel=made['x'], ylabel=made['y'], title=made['title'])
        axes.legend()
        picture = path.with_suffix('.png')
        canvas.savefig(picture, bbox_inches='tight', dpi=96)
        pictures.shrink(picture)
        pyplot.close(canvas)


def _scale(axes, lines):
    points = [point for line in lines.values() for point in line]
    values = [value for _x, value, _low, _high in points]
    if max(values) > _SPAN * max(min(values), 1e-9):
        axes.set_yscale('log')
    else:
        axes.set_ylim(bottom=0)
        axes.yaxis.set_major_formatter(ticker.EngFormatter())


if __name__ == '__main__':
    matplotlib.use('agg')
    for _name in sys.argv[1:]:
        draw(pathlib.Path(_name))

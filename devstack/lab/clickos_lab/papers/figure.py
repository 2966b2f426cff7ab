# SPDX-License-Identifier: Apache-2.0
"""The measured values of a figure."""

import dataclasses
import json
import re
import statistics

#: Values that are measured for each point; the point is their median.
REPEATS = 3


@dataclasses.dataclass
class Figure:
    """Lines of points, each with its least and greatest value.

    :param name: of the files, such as ``fig10-chains``
    :param title: what is measured
    :param paper: the figure that this one answers
    :param x: title of the axis
    :param y: title of the axis
    """

    name: str
    title: str
    paper: str
    x: str
    y: str
    #: (x, median, least, greatest) by line
    lines: dict = dataclasses.field(default_factory=dict)

    def add(self, line, x, values):
        """Add a point to a line."""
        self.lines.setdefault(line, []).append(
            (x, statistics.median(values), min(values), max(values)))

    def text(self, **more):
        """Return the figure as JSON.

        :param more: what holds for the whole run, such as its date
        """
        members = {**dataclasses.asdict(self), **more}
        members['lines'] = {
            line: list(map(json.dumps, points))
            for line, points in self.lines.items()}
        text = json.dumps(members, indent=1)
        # A point is a line, not one line for each of its numbers.
        return re.sub(r'"(\[.*\])"', r'\1', text) + '\n'

# SPDX-License-Identifier: Apache-2.0
"""What was measured, as a table."""

import statistics


class Table:
    """Rows of a figure, its value, and its ratio to the row it names."""

    def __init__(self):
        self._rows = []

    def add(self, name, value, unit, to=None):
        """Add a row and print it.

        :param to: the value that is 1.00 in the last column
        """
        ratio = f'{value / to:.2f}' if to else ''
        self._rows.append((name, f'{value:,.4g} {unit}'
                           if abs(value) < 1000 else f'{value:,.0f} {unit}',
                           ratio))
        print('  '.join(self._rows[-1]).rstrip(), flush=True)

    def __str__(self):
        head = ['| figure | value | ratio |', '|---|---|---|']
        return '\n'.join(head + [f'| {" | ".join(r)} |' for r in self._rows])


def middle(measure, times=5):
    """Return the median of what a function gives when it is called."""
    return statistics.median(measure() for _ in range(times))

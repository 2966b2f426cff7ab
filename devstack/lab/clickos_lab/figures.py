# SPDX-License-Identifier: Apache-2.0
"""Expected and measured values, and their table."""

from clickos_lab import log


class Figures:
    """Measured values in order, each perhaps with an expectation."""

    def __init__(self):
        self._rows = []

    def measured(self, what, value):
        """Note a value that nothing is expected of."""
        self._rows.append((what, value, ''))

    def expect(self, what, value, good):
        """Note a value and whether it is as it has to be."""
        self._rows.append((what, value, 'ok' if good else 'FAILED'))
        log.info(f'  {what}: {value}'
                 f'{"" if good else "   <-- NOT AS EXPECTED"}')

    @property
    def failed(self):
        """Return the number of expectations that were not met."""
        return sum(verdict == 'FAILED' for _, _, verdict in self._rows)

    def print(self):
        """Print the table."""
        width = max(len(what) for what, _, _ in self._rows)
        values = max(len(str(value)) for _, value, _ in self._rows)
        print()
        for what, value, verdict in self._rows:
            print(f'  {what:<{width}}  {value:>{values}}  {verdict}'.rstrip())
        print(flush=True)

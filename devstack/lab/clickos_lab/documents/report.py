# SPDX-License-Identifier: Apache-2.0
"""Counts what became of blocks, and prints it."""

import collections

from clickos_lab.documents import lists
from clickos_lab import log


def _left_out(reason):
    return f'left out ({reason})'


class Report:
    """Counts of blocks by outcome; ``faults`` are the reasons to fail."""

    def __init__(self):
        self.faults = []
        # Each kind shows in the end, also with none.
        self._blocks = collections.Counter(dict.fromkeys((
            'passed', 'failed as known',
            *map(_left_out, lists.REASONS)), 0))
        self._lines = collections.Counter()

    def passed(self, block, seconds):
        """Note a block of which each line that ran passed."""
        self._note('passed', block, f'passed in {seconds:.1f} s')

    def known(self, block, why):
        """Note a block that fails and is known to."""
        self._note('failed as known', block, f'failed as known: {why}')

    def left_out(self, block, reason):
        """Note a block that did not run."""
        self._note(_left_out(reason), block, f'left out: {reason}')

    def line_left_out(self, reason):
        """Note a line that did not run, of a block that may have."""
        self._lines[reason] += 1

    def fault(self, text):
        """Note a reason to fail."""
        log.info(f'  FAILED {text}')
        self.faults.append(text)

    def _note(self, kind, block, text):
        self._blocks[kind] += 1
        log.info(f'  {block} ... {text}')

    def finish(self):
        """Print the counts; return the exit status."""
        for text in self.faults:
            print(f'FAILED {text}')
        for kind, count in sorted(self._blocks.items()):
            print(f'{count} blocks {kind}')
        for reason, count in sorted(self._lines.items()):
            print(f'{count} lines not run: {reason}')
        print(f'{len(self.faults)} faults', flush=True)
        return 1 if self.faults or not self._blocks['passed'] else 0

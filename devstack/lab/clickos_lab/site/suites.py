# SPDX-License-Identifier: Apache-2.0
"""A table of suites and when each last passed, from the file of results."""

import json

from clickos_lab import paths
from clickos_lab.suites import results

_HEAD = ('| suite | passed | commit | minutes |', '|---|---|---|---|')


def markdown(repository):
    """Return a row for each suite, in the order of their names."""
    place = results.FILE.relative_to(paths.REPO)
    known = json.loads((repository / place).read_text())
    rows = [f'| `{name}` | {suite["date"]} | {suite["commit"]} | '
            f'{suite["seconds"] / 60:.1f} |'
            for name, suite in sorted(known.items())]
    return '\n'.join(['', *_HEAD, *rows, ''])

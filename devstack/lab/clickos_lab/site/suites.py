# SPDX-License-Identifier: Apache-2.0
"""Tables of suites and when each last passed, from the files of results."""

import json

from clickos_lab import paths
from clickos_lab.suites import results

_HEAD = ('| suite | passed | commit | minutes |', '|---|---|---|---|')
_LOADED = ('## `make test` under load', '',
           '| date | commit | minutes | failed | passed only alone |',
           '|---|---|---|---|---|')


def markdown(repository):
    """Return a row for each suite, by name, and one for each run under load.
    """
    known, loaded = (
        json.loads((repository / file.relative_to(paths.REPO)).read_text())
        for file in (results.FILE, results.LOADED))
    rows = [f'| `{name}` | {suite["date"]} | {suite["commit"]} | '
            f'{suite["seconds"] / 60:.1f} |'
            for name, suite in sorted(known.items())]
    runs = [f'| {run["date"]} | {run["commit"]} | {run["seconds"] / 60:.1f} | '
            f'{", ".join(run["failed"]) or "none"} | '
            f'{", ".join(run["again"]) or "none"} |' for run in loaded]
    return '\n'.join(['', *_HEAD, *rows, '', *_LOADED, *runs, ''])

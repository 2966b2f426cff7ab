# SPDX-License-Identifier: Apache-2.0
"""When each suite last passed, and at which commit: a file in git.

``make integration`` and ``make soak`` write it; ``make test``, which passes
at each commit, does not.
"""

import datetime
import json

from clickos_lab import paths

FILE = paths.REPO / 'docs/reference/suites.json'
#: runs of `make test` under load, by ``make soak PARTS=gate``: a list
LOADED = paths.REPO / 'docs/reference/gate.json'


def today():
    """Return the date as it stands in the file."""
    return datetime.date.today().isoformat()


def record(passed, commit, path=FILE):
    """Note suites that passed.

    :param passed: pairs of a suite's name and its time in seconds
    """
    known = json.loads(path.read_text()) if path.exists() else {}
    known.update({
        name: {'date': today(), 'commit': commit, 'seconds': round(seconds)}
        for name, seconds in passed})
    rows = ',\n'.join(f' {json.dumps(name)}: {json.dumps(suite)}'
                      for name, suite in sorted(known.items()))
    path.write_text(f'{{\n{rows}\n}}\n')

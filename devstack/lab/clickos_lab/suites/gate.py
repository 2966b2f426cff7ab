# SPDX-License-Identifier: Apache-2.0
"""The proof of ``make test``: it passes under load, and each bound holds.

``python -m clickos_lab.suites.gate`` runs the suites of ``make test`` while
stress-ng keeps four processors busy, as often as ``RUNS`` says (once). It
appends each run to :data:`results.LOADED`. Then it sets each bound of the
promises out of reach in turn: the test that holds it has to fail.
"""

import contextlib
import json
import os
import subprocess
import sys
import time

from clickos_lab import apt
from clickos_lab import paths
from clickos_lab.suites import bounds
from clickos_lab.suites import catalog
from clickos_lab.suites import command
from clickos_lab.suites import progress
from clickos_lab.suites import results
from clickos_lab.suites import runner

_PROCESSORS = 4


def main():
    """Run both; 0 when all passed and no bound is void."""
    state = paths.State()
    apt.ensure(state, ('stress-ng',))
    runs = int(os.environ.get('RUNS') or 1)
    failed = sum(_run(state) for _ in range(runs))
    return int(failed + bounds.main([]) > 0)


def _run(state):
    """Run the suites once; 1 if one of them failed."""
    began_s, commit = time.monotonic(), progress.commit()
    with _load():
        outcomes = command.outcomes_of(state, catalog.test(state), commit)
    seconds = time.monotonic() - began_s
    _append({'date': results.today(), 'commit': commit,
             'seconds': round(seconds), 'processors': os.cpu_count(),
             'failed': [o.name for o in outcomes if not o.passed],
             'again': [name for o in outcomes for name in o.again]})
    return runner.report(outcomes, seconds)


@contextlib.contextmanager
def _load():
    with subprocess.Popen(
            ['stress-ng', '--quiet', '--cpu', str(_PROCESSORS)],
            stdin=subprocess.DEVNULL) as process:
        try:
            yield
        finally:
            process.terminate()


def _append(run):
    file = results.LOADED
    runs = json.loads(file.read_text()) if file.exists() else []
    file.write_text(json.dumps([*runs, run], indent=1) + '\n')


if __name__ == '__main__':
    sys.exit(main())

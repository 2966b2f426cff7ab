# SPDX-License-Identifier: Apache-2.0
"""``make test``."""

import os
import sys

from clickos_lab import errors
from clickos_lab import rust
from clickos_lab.suites import catalog
from clickos_lab.suites import runner


def run(state, names):
    """Run all suites, or those that are named.

    :raises LabError: if there is no suite of a name
    """
    suites = catalog.suites(state)
    known = [s.name for s in suites]
    unknown = sorted(set(names) - set(known))
    if unknown:
        raise errors.LabError(f'no such suite: {" ".join(unknown)}; there '
                              f'are {" ".join(known)}')
    chosen = [s for s in suites if not names or s.name in names]
    return runner.run_all(chosen, state.log, _environment(state))


def _environment(state):
    cargo = rust.environment(state)
    path = f'{state.venv}/bin:{cargo["PATH"]}'
    keep = {k: v for k, v in os.environ.items() if not k.startswith('OS_')}
    return {**keep, **cargo, 'PATH': path, 'PYTHONUNBUFFERED': '1',
            'CLICKOS_STATE': str(state.root),
            'PYTHONPATH': os.pathsep.join(p for p in sys.path if p)}

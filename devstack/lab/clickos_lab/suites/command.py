# SPDX-License-Identifier: Apache-2.0
"""``make test``, ``make lint``, ``make unit``, ``make integration``."""

import os
import sys

from clickos_lab import errors
from clickos_lab import rust
from clickos_lab.suites import catalog
from clickos_lab.suites import runner


#: Groups of suites; :func:`run` knows them by name.
GROUPS = {'all': catalog.suites, 'lint': catalog.lint, 'unit': catalog.unit,
          'integration': catalog.integration}


def run(state, names, group='all'):
    """Run the suites of a group, or those that are named.

    :raises LabError: if there is no suite of a name
    """
    suites = GROUPS[group](state)
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

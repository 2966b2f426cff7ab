# SPDX-License-Identifier: Apache-2.0
"""``make test``, ``make lint``, ``make unit``, ``make integration``."""

import os
import sys
import time

from clickos_lab import errors
from clickos_lab import rust
from clickos_lab.suites import again
from clickos_lab.suites import catalog
from clickos_lab.suites import progress
from clickos_lab.suites import results
from clickos_lab.suites import runner

#: Names of suites in the release before 1.0, which are still accepted.
_FORMER = {'circles': 'import_cycles'}


def run(state, names, tier='test'):
    """Run the suites of a tier, or those of them that are named.

    :param tier: one of :data:`catalog.TIERS`
    :returns: 0 when all passed, else 1
    :raises LabError: if there is no suite of a name
    """
    began_s = time.monotonic()
    commit = progress.commit()
    outcomes = outcomes_of(state, chosen(state, names, tier), commit)
    if tier == 'integration':
        results.record([(o.name, o.seconds) for o in outcomes if o.passed],
                       commit)
    return runner.report(outcomes, time.monotonic() - began_s)


def outcomes_of(state, suites, commit):
    """Run suites, and list tests that passed only when run again."""
    outcomes = runner.run_all(suites, state.log, environment(state))
    again.add([{'test': name, 'suite': outcome.name, 'commit': commit,
                'date': results.today()}
               for outcome in outcomes for name in outcome.again])
    return outcomes


def chosen(state, names, tier):
    """Return the suites of a tier, or those of them that are named.

    :raises LabError: if there is no suite of a name
    """
    names = [_FORMER.get(name, name) for name in names]
    suites = catalog.TIERS[tier](state)
    known = [s.name for s in suites]
    unknown = sorted(set(names) - set(known))
    if unknown:
        raise errors.LabError(f'no such suite: {" ".join(unknown)}; there '
                              f'are {" ".join(known)}')
    return [s for s in suites if not names or s.name in names]


def environment(state):
    """Return the environment of a suite."""
    cargo = rust.environment(state)
    path = f'{state.venv}/bin:{cargo["PATH"]}'
    keep = {k: v for k, v in os.environ.items() if not k.startswith('OS_')}
    return {**keep, **cargo, 'PATH': path, 'PYTHONUNBUFFERED': '1',
            'CLICKOS_STATE': str(state.root),
            'PYTHONPATH': os.pathsep.join(p for p in sys.path if p)}

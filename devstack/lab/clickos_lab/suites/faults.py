# SPDX-License-Identifier: Apache-2.0
"""``make soak PARTS=faults``: outages in the middle of operations.

``python -m clickos_lab.suites.faults`` starts a lab and runs all cases. The
environment variable FAULTS is an expression that selects cases by class and
name, such as ``FaultsTable.*_kill``; then the lab has one host. The suite
prints a row for each operation during an outage, and how many of them
completed without help.
"""

import collections
import json
import os
import sys

from clickos_lab.config import hosts
from clickos_lab.config import tempest
from clickos_lab import databases
from clickos_lab import lab as _lab
from clickos_lab import paths
from clickos_lab import prepare
from clickos_lab.suites import on_lab
from clickos_lab.suites import tempest_run

_ALL = r'\.(Faults|Kills|Outages|PowerCut)\w*\.'
_COLUMNS = ('fault', 'away_s', 'operation', 'outcome', 'seconds', 'reason')
#: of the operations with another daemon away for 10 s, in hundredths; during
#: longer outages an operation may fail with a reason
_LEAST_PERCENT = 90
_SHORT_S = 10
_MAX_REASON = 160
#: A state whose id got lost goes after a day, so these are only counted.
_STATES = 'states of guests'
#: What no operation may leave, by name: all projects of the tests are gone.
REMAINS = {
    _STATES: 'select state_key from clickos.desired_state'
             ' where gone_at is null',
    'open operations': 'select id, operation, operation_state from'
                       ' tacker.vnf_lcm_op_occs where operation_state in'
                       " ('STARTING', 'PROCESSING', 'ROLLING_BACK')",
    'errors of completed operations':
        "select id from tacker.vnf_lcm_op_occs where error <> 'null' and"
        " operation_state = 'COMPLETED'"}


def main():
    """Start the services, run the cases, stop the services, show the rows."""
    state = paths.State()
    wanted = os.environ.get('FAULTS')
    table = tempest.faults_path(state)
    table.unlink(missing_ok=True)
    lab = _lab.Lab(state, () if wanted else (hosts.SECOND, hosts.XEN))
    status = on_lab.run(lab, lambda: _work(state, _regex(wanted)),
                        lambda: wanted or prepare.xen(state))
    rows = read(table)
    for line in lines(rows):
        print(line)
    short = [row for row in rows if row['away_s'] <= _SHORT_S]
    lost = any(row['outcome'] == 'lost' for row in rows)
    return status or int(lost or share(short) < _LEAST_PERCENT)


def _work(state, regex):
    """Run the cases, then look for remains in the databases."""
    status = tempest_run.run(state, ['--regex', regex], workers=1)
    for name, query in REMAINS.items():
        left = databases.rows(state, query)
        print(f'seen: {len(left)} {name} left', *left[:10], sep='\n  ')
        status = status or int(bool(left) and name != _STATES)
    return status


def _regex(wanted):
    """Return the expression of the cases, the named ones or all."""
    return f'^(?=.*{_ALL}).*(?:{wanted})' if wanted else _ALL


def read(path):
    """Return the rows that the tests have written."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().splitlines()]


def share(rows):
    """Return how many operations in a hundred completed by themselves."""
    if not rows:
        return 100
    completed = sum(row['outcome'] == 'completed' for row in rows)
    return 100 * completed / len(rows)


def lines(rows):
    """Return the table, then a sum for each length of an outage."""
    yield f'| {" | ".join(_COLUMNS)} |'
    yield '|---' * len(_COLUMNS) + '|'
    for row in rows:
        yield '| ' + ' | '.join(
            _cell(row[column]) for column in _COLUMNS) + ' |'
    lengths = sorted({row['away_s'] for row in rows})
    for away_s in lengths:
        yield _sum([row for row in rows if row['away_s'] == away_s], away_s)


def _sum(rows, away_s):
    counts = collections.Counter(row['outcome'] for row in rows)
    return (f'seen: {counts["completed"]} of {len(rows)} operations with a '
            f'daemon away for {away_s} s completed by themselves '
            f'({share(rows):.0f} %), {counts["retried"]} after a retry, '
            f'{counts["lost"]} not at all')


def _cell(value):
    return ' '.join(str(value).split()).replace('|', '/')[:_MAX_REASON]


if __name__ == '__main__':
    os.umask(0o077)
    sys.exit(main())

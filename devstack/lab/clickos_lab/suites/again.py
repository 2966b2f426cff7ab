# SPDX-License-Identifier: Apache-2.0
"""Failed tests run once more, each alone; those that then pass are listed.

A suite prints a line for such a test and passes. The runner reads the line,
names the test at its end and adds it to :data:`LIST`. The check ``flaky``
fails when a test is listed twice. A mend removes the entries of its test.
"""

import json

from clickos_lab import paths

#: What a suite prints before the name of a test that passed alone.
MARK = 'passed only when run again, alone: '
#: With more failures than this a run has failed: they have one cause.
MOST = 5
#: The tests that did so: a list of objects with test, suite, date and commit.
LIST = paths.REPO / 'devstack/lab/flaky.json'


def judge(failed, run_alone):
    """Run failed tests again and print which of them pass.

    :param failed: their names
    :param run_alone: takes a name, tells whether the test passed
    :returns: whether all of them passed
    """
    if not 0 < len(failed) <= MOST:
        return False
    passed = [name for name in failed if run_alone(name)]
    for name in passed:
        print(f'{MARK}{name}', flush=True)
    return len(passed) == len(failed)


def named(line):
    """Return the test that a line of :func:`judge` names, or None."""
    return line.removeprefix(MARK) if line.startswith(MARK) else None


def entries(path=LIST):
    """Return the list; empty if there is no file."""
    return json.loads(path.read_text()) if path.exists() else []


def add(found, path=LIST):
    """Add entries to the list."""
    if found:
        path.write_text(json.dumps([*entries(path), *found], indent=1) + '\n')

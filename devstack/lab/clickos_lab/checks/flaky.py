# SPDX-License-Identifier: Apache-2.0
"""No test has passed twice only when it ran again alone.

A mend removes the entries of its test from devstack/lab/flaky.json.
"""

import collections
import sys

from clickos_lab import checks
from clickos_lab.suites import again


def problems(entries):
    """Return a line for each test that is listed more than once."""
    counts = collections.Counter(entry['test'] for entry in entries)
    return [f'{again.LIST.name}: {test}: failed {count} times and passed '
            'when run again; mend it and remove its entries'
            for test, count in sorted(counts.items()) if count > 1]


def main():
    """Check the list; 0 when all is well."""
    entries = again.entries()
    # The list may be empty, so the file itself is what is checked, too.
    return checks.report(problems(entries), len(entries) + 1, 'entries')


if __name__ == '__main__':
    sys.exit(main())

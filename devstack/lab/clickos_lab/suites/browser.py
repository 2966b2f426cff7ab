# SPDX-License-Identifier: Apache-2.0
"""``python -m clickos_lab.suites.browser``: the dashboard in a browser.

The pages come from the test's own process, on a cloud that answers from a
table. So the suite needs a browser, but no service.
"""

import os
import sys

from clickos_lab import apt
from clickos_lab import axe
from clickos_lab import paths
from clickos_lab.suites import stestr_tests


def main():
    """Fetch browser and axe-core if need be, run the tests; 0 if all passed.
    """
    state = paths.State()
    apt.ensure(state, apt.BROWSER_PACKAGES)
    axe.ensure(state)
    return stestr_tests.main(state.tool('stestr'),
                             state.root / 'stestr/browser', 'tacker-plugin',
                             'browser')


if __name__ == '__main__':
    os.umask(0o077)
    sys.exit(main())

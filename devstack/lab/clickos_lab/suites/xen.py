# SPDX-License-Identifier: Apache-2.0
"""The tests on a real Xen host; a program, so that others can be named.

``python -m clickos_lab.suites.xen [TEST ...]``, a test as
``tests.xen.test_host`` or ``tests.xen.test_host.BootTest``.
"""

import os
import signal
import sys
import unittest

from clickos_lab import errors
from clickos_lab import paths
from clickos_lab.xen import command

_TOP = paths.REPO / 'devstack/lab'


def main(names):
    """Build what is missing and run the tests; 0 when all passed.

    :param names: of the tests; if there are none, all in ``tests/xen``
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        command.prepare(paths.State())
    except errors.LabError as e:
        print(f'error: {e}')
        return 1
    result = unittest.TextTestRunner(
        stream=sys.stdout, verbosity=2).run(_tests(names))
    return 0 if result.wasSuccessful() else 1


def _tests(names):
    sys.path.insert(0, str(_TOP))
    loader = unittest.TestLoader()
    if names:
        return loader.loadTestsFromNames(names)
    return loader.discover(_TOP / 'tests/xen', top_level_dir=_TOP)


if __name__ == '__main__':
    os.umask(0o077)
    sys.exit(main(sys.argv[1:]))

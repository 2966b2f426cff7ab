# SPDX-License-Identifier: Apache-2.0
"""Builds the toolstack of later tests on Xen while the first ones run.

The guests' images and QEMU keep one core busy each; this uses another. A test
that comes too early waits, since cargo lets only one build into a folder. A
build that fails here fails again in the test that needs it.
"""

import contextlib
import signal
import subprocess
import sys

from clickos_lab import errors
from clickos_lab import paths
from clickos_lab.xen import packages
from clickos_lab.xen import toolstack
from clickos_lab.xen import xen_paths


@contextlib.contextmanager
def started(state):
    """Build in a process of its own, which ends with the block at last."""
    with open(state.log / 'xen-prebuild.log', 'wb') as log:
        process = subprocess.Popen(
            ['nice', sys.executable, '-m', 'clickos_lab.suites.prebuild'],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        yield
    finally:
        process.terminate()
        process.wait(timeout=60)


def main():
    """Fetch libxl and build the toolstack."""
    # So that the program that builds is ended, too.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    state = paths.State()
    found = xen_paths.XenPaths(state)
    try:
        found.create()
        with found.lock():
            packages.ensure(found)
        toolstack.build(state, found)
    except (errors.LabError, KeyboardInterrupt) as e:
        print(f'error: {e}')
        return 1
    return 0


if __name__ == '__main__':
    sys.exit(main())

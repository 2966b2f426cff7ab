# SPDX-License-Identifier: Apache-2.0
"""Builds the patched Xen of a first run while the rest is prepared.

The build keeps a core busy for minutes, while the lab fetches Python packages
and builds its other programs. A build that fails here fails again in
:func:`variant`, which tells why.
"""

import contextlib
import os
import signal
import subprocess
import sys

from clickos_lab import apt
from clickos_lab import errors
from clickos_lab import log
from clickos_lab import paths
from clickos_lab import prereq
from clickos_lab import shell
from clickos_lab.xen import packages
from clickos_lab.xen import patched
from clickos_lab.xen import variants
from clickos_lab.xen import xen_paths

#: The build has limits of its own for each program.
_LIMIT_S = 3600


@contextlib.contextmanager
def started(state, wanted):
    """Build in a process of its own, which ends with the block at last.

    :param wanted: variant of Xen; None without a Xen host
    """
    places = xen_paths.XenPaths(state)
    if wanted != variants.PATCHED or patched.is_built(places) \
            or not _can_be_installed(state, places):
        yield
        return
    log.info("Xen's tools with our patches: built in the background")
    with open(state.log / 'xen-background.log', 'wb') as log_file:
        process = subprocess.Popen(
            [sys.executable, '-m', 'clickos_lab.xen.background'],
            stdin=subprocess.DEVNULL, stdout=log_file, stderr=log_file)
    try:
        yield
        if process.poll() is None:
            with log.step("the rest of Xen's tools"):
                shell.wait(process, _LIMIT_S)
    finally:
        if process.poll() is None:
            process.terminate()
        process.wait()


def _can_be_installed(state, places):
    """Install packages before others do: apt serves one at a time.

    What fails here fails again in :func:`variant`, which tells why.
    """
    prereq.check()
    state.create()
    try:
        apt.ensure(state)
        places.create()
        with places.lock():
            packages.ensure(places)
        patched.install(state, places)
    except errors.LabError:
        return False
    return True


def variant(state, places, wanted):
    """Build a variant of Xen; return it, or the stock one.

    The message about missing sources goes to standard error.
    """
    if wanted == variants.STOCK:
        return wanted
    try:
        _build(state, places)
    except patched.SourcesMissing as e:
        log.warn('the sources of Xen are not to be had, so the host gets '
                 f"Debian's Xen without our patches, as HOST=xen-stock: {e}")
        return variants.STOCK
    return wanted


def _build(state, places):
    places.create()
    with places.lock():
        packages.ensure(places)
        patched.prepare(state, places)


def main():
    """Build all that the patched Xen needs."""
    os.nice(10)
    # So that the program that builds is ended, too.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    state = paths.State()
    try:
        _build(state, xen_paths.XenPaths(state))
    except (errors.LabError, KeyboardInterrupt) as e:
        print(f'error: {e}')
        return 1
    return 0


if __name__ == '__main__':
    os.umask(0o077)
    sys.exit(main())

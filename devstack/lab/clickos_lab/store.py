# SPDX-License-Identifier: Apache-2.0
"""The real xenstored, built to run without a hypervisor (cosmos/noxen)."""

import shutil

from clickos_lab import apt
from clickos_lab import errors
from clickos_lab import log
from clickos_lab import paths
from clickos_lab import shell
from clickos_lab import stamps

_FOLDER = paths.REPO / 'cosmos/noxen'


def build(state):
    """Build it into the state folder, if its sources changed."""
    sources = [p for p in _FOLDER.iterdir() if p.is_file()]
    stamp = state.noxen / 'build.stamp'
    wanted = stamps.digest(sources, 'with xenstored.sh')
    if stamps.fresh(stamp, wanted):
        return
    with log.step('Xen store daemon'):
        _build(state)
        # Its account cannot enter the repository.
        shutil.copy(_FOLDER / 'xenstored.sh', state.noxen)
    stamp.write_text(wanted)


def _build(state):
    command = [_FOLDER / 'build.sh', state.noxen]
    log_file = state.log / 'noxen.log'
    try:
        shell.run(command, log_file)
    except errors.LabError:
        apt.refresh(log_file)        # Debian may have newer packages by now
        shell.run(command, log_file)

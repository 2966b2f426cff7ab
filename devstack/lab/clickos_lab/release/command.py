# SPDX-License-Identifier: Apache-2.0
"""``make release``: a release in ``dist/VERSION``, after all checks."""

import os
import pathlib
import shutil
import subprocess
import sys

from clickos_lab import log
from clickos_lab import paths
from clickos_lab.release import artifacts
from clickos_lab.release import tree
from clickos_lab.release import trials
from clickos_lab import version

DIST = paths.REPO / 'dist'


def run(state, _arguments):
    """Build and try a release of HEAD; return the exit status.

    A worktree of HEAD does both, with a state folder of its own: no file
    that git does not know takes part.

    :raises LabError: if HEAD must not be released
    """
    tree.require_releasable()
    commit = tree.git('rev-parse', 'HEAD')
    state.create()
    place = state.root / 'release'
    place.mkdir(exist_ok=True)
    older = trials.baseline(place / trials.BASELINE)
    files, sources = place / 'files', place / 'tree'
    tree.check_out(sources, commit)
    status = subprocess.run(
        [sys.executable, '-m', 'clickos_lab', 'release', '--from', older,
         '--into', files], cwd=sources,
        env={**os.environ, 'CLICKOS_STATE': str(place / 'state'),
             'PYTHONPATH': str(sources / 'devstack/lab')}).returncode
    return status or _publish(files)


def run_inside(state, arguments):
    """Do it in the worktree; return the exit status."""
    files = pathlib.Path(arguments.into)
    artifacts.build(state, files)
    return 1 if trials.run(state, files, pathlib.Path(arguments.older)) else 0


def _publish(files):
    """Put the checked files in their place; tell what is left to do."""
    target = DIST / version.number()
    shutil.rmtree(target, ignore_errors=True)
    DIST.mkdir(exist_ok=True)
    shutil.move(files, target)
    for path in sorted(target.iterdir()):
        log.info(f'{path.relative_to(paths.REPO)}: '
                 f'{path.stat().st_size // 1024} KiB')
    log.info(f'to publish it: git tag -s v{version.number()}')
    return 0

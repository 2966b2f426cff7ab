# SPDX-License-Identifier: Apache-2.0
"""The programs ``click`` and ``click-pretty``, built where cargo test does."""

import functools
import os
import pathlib
import subprocess

from clickos_lab import paths
from clickos_lab import prereq


@functools.cache
def _folder():
    """Build the programs once; return their folder."""
    subprocess.run([prereq.rust_tool('cargo'), 'build', '--quiet', '--locked',
                    '-p', 'click-run', '--bins'], cwd=paths.REPO, check=True)
    return pathlib.Path(
        os.environ.get('CARGO_TARGET_DIR', paths.REPO / 'target'), 'debug')


def path(name):
    """Return the path of a program."""
    return _folder() / name

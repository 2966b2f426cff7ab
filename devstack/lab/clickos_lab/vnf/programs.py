# SPDX-License-Identifier: Apache-2.0
"""The programs ``click`` and ``click-pretty``, built where cargo test does.

They have the features that ``cargo test --workspace`` gives them, so cargo
builds nothing twice.
"""

import functools
import os
import pathlib
import subprocess

from clickos_lab import paths
from clickos_lab import prereq

_NAMES = ('click', 'click-check', 'click-combine', 'click-flatten',
          'click-pretty', 'click-uncombine')
#: A build with a test takes the features of all tests; this one is small.
_TEST = 'memory'


@functools.cache
def _folder():
    """Build the programs once; return their folder."""
    programs = [word for name in _NAMES for word in ('--bin', name)]
    subprocess.run([prereq.rust_tool('cargo'), 'build', '--quiet', '--locked',
                    '--workspace', *programs, '--test', _TEST],
                   cwd=paths.REPO, check=True)
    return pathlib.Path(
        os.environ.get('CARGO_TARGET_DIR', paths.REPO / 'target'), 'debug')


def path(name):
    """Return the path of a program."""
    return _folder() / name

# SPDX-License-Identifier: Apache-2.0
"""Builds the Debian packages and tries them in a fresh Debian."""

import os
import subprocess
import sys

from clickos_lab import paths
from clickos_lab import prepare


def main():
    """Return the exit status of the tests."""
    state = paths.State()
    prepare.everything(state)
    prepare.packages(state)
    folder = paths.REPO / 'devstack/lab'
    return subprocess.run(
        [state.tool('python'), '-m', 'unittest', '-v',
         'tests.packages.test_packages'], cwd=folder,
        env={**os.environ, 'PYTHONPATH': str(folder)}).returncode


if __name__ == '__main__':
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0
"""Commands that no virtual environment exists for import Python alone."""

import os
import subprocess
import sys

from clickos_lab import paths
from tests.unit import base

#: What ``make try``, ``make demo`` before its environment, ``make lab-down``
#: and ``make clean-demo`` import.
_MODULES = ('__main__', 'prepare', 'trial', 'lab', 'host.command',
            'xen.command')
_FOLDERS = ('devstack/lab', 'cosmos/python', 'interfaces')


class PlainPythonTest(base.TestCase):

    def test_no_package_is_needed(self):
        python = os.path.realpath(sys.executable)
        path = os.pathsep.join(str(paths.REPO / f) for f in _FOLDERS)
        names = ', '.join(f'clickos_lab.{name}' for name in _MODULES)
        done = subprocess.run(
            [python, '-S', '-c', f'import {names}'], text=True,
            env={'PATH': os.environ['PATH'], 'PYTHONPATH': path},
            capture_output=True, timeout=60)
        self.assertEqual((0, ''), (done.returncode, done.stderr))

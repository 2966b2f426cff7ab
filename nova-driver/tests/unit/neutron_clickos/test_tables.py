# SPDX-License-Identifier: Apache-2.0
"""Runs the tests on tables of Neutron's server."""

import os
import pathlib
import subprocess
import sys

import testtools

_TOP = pathlib.Path(__file__).parents[3]


class TablesTest(testtools.TestCase):

    def test_in_a_process_of_its_own(self):
        # Neutron's server and Nova have different options of one name.
        done = subprocess.run(
            [sys.executable, '-m', 'unittest', 'discover', '-t', '.',
             '-s', 'tests/neutron'],
            cwd=_TOP, env={**os.environ, 'PYTHONPATH': os.pathsep.join(
                [str(_TOP), *map(os.path.abspath, sys.path)])},
            stdin=subprocess.DEVNULL, capture_output=True, text=True)
        self.assertEqual(0, done.returncode, done.stderr)

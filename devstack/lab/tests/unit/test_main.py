# SPDX-License-Identifier: Apache-2.0
"""How a command finds its Python."""

import os
import subprocess
import sys
import venv

from clickos_lab import paths
from tests.unit import base

#: The command's preparation tells who runs it, and where it then continues.
_SCRIPT = '''
import os, sys
from clickos_lab import __main__ as main, paths, prepare
prepare.everything = lambda state: print('prepared by', sys.prefix)
prepare.xen = lambda state: None
main._become = lambda python: (print('goes on as', python), sys.exit())
main._in_venv(paths.State(), None)
print('is there')
'''


class PythonTest(base.TestCase):

    def setUp(self):
        super().setUp()
        venv.create(self.state.venv, symlinks=True)

    def run_as(self, python, **environment):
        """Run the script; return the lines that it prints."""
        path = str(paths.REPO / 'devstack/lab')
        done = subprocess.run(
            [python, '-c', _SCRIPT], text=True, capture_output=True,
            env={**os.environ, 'PYTHONPATH': path,
                 'CLICKOS_STATE': str(self.state.root), **environment})
        self.assertEqual('', done.stderr)
        return done.stdout.splitlines()

    def test_the_systems_python_prepares_and_goes_on_in_the_environment(self):
        python = os.path.realpath(sys.executable)
        prepared, goes_on = self.run_as(python)
        self.assertRegex(prepared, '^prepared by /')
        self.assertEqual(f'goes on as {self.state.tool("python")}', goes_on)

    def test_the_environments_python_prepares_too(self):
        # as in a shell that has read an openrc
        python = str(self.state.tool('python'))
        self.assertEqual(
            [f'goes on as {os.path.realpath(python)}'], self.run_as(python))

    def test_the_mark_of_another_process_does_not_count(self):
        python = str(self.state.tool('python'))
        self.assertEqual(
            [f'goes on as {os.path.realpath(python)}'],
            self.run_as(python, CLICKOS_LAB_PREPARED='1'))


class SuitesTest(base.TestCase):

    def test_a_wrong_suite_ends_it_before_the_preparation(self):
        done = subprocess.run(
            [os.path.realpath(sys.executable), '-m', 'clickos_lab', 'test',
             '--tier', 'lint', 'docs', 'no-such'],
            text=True, capture_output=True, cwd=paths.REPO / 'devstack/lab',
            env={**os.environ, 'CLICKOS_STATE': str(self.state.root)})
        self.assertEqual(1, done.returncode)
        self.assertIn('no such suite: no-such; there are licenses docs',
                      done.stdout + done.stderr)
        self.assertFalse(self.state.venv.exists())

# SPDX-License-Identifier: Apache-2.0
"""A killed program leaves no process and no folder behind."""

import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from clickos_lab import guardian

_PATIENCE_S = 30
_PROGRAM = '''
import contextlib, os, subprocess, sys
from clickos_lab import guardian
stack, folder = contextlib.ExitStack(), sys.argv[1]
guardian.Guardian(folder, stack)
subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)',
                  f'{folder}/a'], start_new_session=True)
print('ready', flush=True)
if sys.argv[2] == 'ends':
    stack.close()
    sys.exit()
sys.stdin.read()
'''


class GuardianTest(unittest.TestCase):

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(self._kill)

    def _kill(self):
        for pid in guardian._pids(self.folder):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def _program(self, way):
        program = subprocess.Popen(
            [sys.executable, '-c', _PROGRAM, self.folder, way],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            env={**os.environ, 'PYTHONPATH': ':'.join(sys.path)})
        self.addCleanup(program.__exit__, None, None, None)
        self.addCleanup(program.kill)
        self.assertEqual(b'ready\n', program.stdout.readline())
        return program

    def _wait_for_process(self):
        """A process has no command line until it is loaded."""
        end_s = time.monotonic() + _PATIENCE_S
        while time.monotonic() < end_s:
            if len(guardian._pids(self.folder)) == 1:
                return
            time.sleep(0.01)
        self.fail(f'{guardian._pids(self.folder)}, expected one process')

    def test_what_a_killed_program_left_ends(self):
        program = self._program('waits')
        self._wait_for_process()
        program.kill()
        end_s = time.monotonic() + _PATIENCE_S
        while self.folder.exists() and time.monotonic() < end_s:
            time.sleep(0.01)
        self.assertFalse(self.folder.exists())
        self.assertEqual([], guardian._pids(self.folder))

    def test_a_program_that_cleans_up_is_left_alone(self):
        program = self._program('ends')
        program.wait()
        self.assertTrue(self.folder.exists())
        self._wait_for_process()


if __name__ == '__main__':
    unittest.main()

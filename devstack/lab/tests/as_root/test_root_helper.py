# SPDX-License-Identifier: Apache-2.0
"""A service that is not root and has commands run as root."""

import os
import pathlib
import shutil
import subprocess
import sys

from clickos_lab import accounts
from clickos_lab import root_helper
from tests.as_root import case

_USER, _STRANGER = 'neutron', 'keystone'
#: Without the virtual environment, which others perhaps cannot enter.
_PYTHON = os.path.realpath(sys.executable)


class RootHelperTest(case.AccountsCase):

    def setUp(self):
        super().setUp()
        self.program = self.state.root / 'root_helper.py'
        shutil.copy(pathlib.Path(root_helper.__file__), self.program)
        self.program.chmod(0o644)
        self.socket = self.state.root / 'sock'

    def asking(self, account, *command):
        """Return the command of an account that asks for another one."""
        return [*accounts.prefix(self.state, self.settings, account),
                _PYTHON, '-I', self.program, 'ask', self.socket, *command]

    def serve(self, *service, wrapper=('env', 'WRAPPED=1')):
        """Run a service to its end with the helper of a user."""
        return subprocess.run(
            [sys.executable, '-I', self.program, 'serve', self.socket,
             str(self.settings.ids[_USER]), *wrapper, *service],
            input='asked', text=True, capture_output=True, timeout=60)

    def test_the_wrapper_runs_the_command_with_the_askers_files(self):
        script = 'id -u; echo $WRAPPED; cat; echo E >&2; exit 7'
        done = self.serve(*self.asking(_USER, 'sh', '-c', script))
        self.assertEqual((7, '0\n1\nasked', 'E\n'),
                         (done.returncode, done.stdout, done.stderr))

    def test_another_user_cannot_ask(self):
        done = self.serve(*self.asking(_STRANGER, 'id', '-u'))
        self.assertIn('PermissionError', done.stderr)
        self.assertEqual((1, ''), (done.returncode, done.stdout))

    def test_what_the_wrapper_refuses_does_not_run(self):
        done = self.serve(*self.asking(_USER, 'echo', 'ran'),
                          wrapper=('false', ''))
        self.assertEqual((1, ''), (done.returncode, done.stdout))

    def test_a_request_that_is_none_ends_with_a_status(self):
        ask = ('import socket, sys; s = socket.socket(socket.AF_UNIX, '
               'socket.SOCK_SEQPACKET); s.connect(sys.argv[1]); '
               's.send(b"[1]"); print(s.recv(16).decode())')
        done = self.serve(sys.executable, '-c', ask, self.socket)
        self.assertEqual('126\n', done.stdout)
        self.assertIn('3 files are needed', done.stderr)

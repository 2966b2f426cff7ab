# SPDX-License-Identifier: Apache-2.0
"""QEMU's control socket: JSON lines."""

import json
import socket

from clickos_lab import errors

_TIMEOUT_S = 30


class Qmp:
    """A connection; to be used with ``with``.

    :raises LabError: if QEMU does not answer or refuses a command
    """

    def __init__(self, path):
        self._path = path
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(_TIMEOUT_S)

    def __enter__(self):
        try:
            self._socket.connect(str(self._path))
        except OSError as e:
            raise errors.LabError(f'{self._path}: {e.strerror}')
        self._lines = self._socket.makefile('rw')
        self._read()                    # the greeting
        self('qmp_capabilities')
        return self

    def __exit__(self, *_exception):
        self._lines.close()             # it too keeps the socket open
        self._socket.close()

    def __call__(self, command, **arguments):
        """Run a command; return what it returns."""
        request = {'execute': command, 'arguments': arguments}
        self._lines.write(json.dumps(request) + '\n')
        self._lines.flush()
        while True:
            answer = self._read()
            if 'error' in answer:
                raise errors.LabError(
                    f'QEMU: {command}: {answer["error"]["desc"]}')
            if 'return' in answer:
                return answer['return']

    def human(self, line):
        """Run a command that exists for people only; return its text."""
        return self('human-monitor-command', **{'command-line': line})

    def _read(self):
        try:
            line = self._lines.readline()
        except TimeoutError:
            raise errors.LabError(f'QEMU is silent for {_TIMEOUT_S} s')
        if not line:
            raise errors.LabError('QEMU has ended')
        return json.loads(line)

# SPDX-License-Identifier: Apache-2.0
"""A client of the ControlSocket protocol."""

import socket
import time

from clickos_lab import errors

_PATIENCE_S = 60


class Control:
    """The handlers of a ``click`` that answers on a UNIX socket."""

    def __init__(self, path):
        self._path = str(path)
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(_PATIENCE_S)
        self._connect()
        self._answers = self._socket.makefile('rb')
        self._answers.readline()

    def _connect(self):
        deadline_s = time.monotonic() + _PATIENCE_S
        while True:
            try:
                return self._socket.connect(self._path)
            except OSError as e:
                if time.monotonic() > deadline_s:
                    raise errors.LabError(f'{self._path}: {e.strerror}')
                time.sleep(0.02)

    def close(self):
        self._answers.close()
        self._socket.close()

    def read(self, handler):
        """Return a read handler's value.

        :raises LabError: if there is none
        """
        self._ask(f'READ {handler}\r\n'.encode())
        length = int(self._answers.readline().split()[1])
        return self._answers.read(length).decode().strip()

    def write(self, handler, value):
        """Write a handler.

        :raises LabError: with the element's words if it refuses
        """
        data = value.encode()
        self._ask(f'WRITEDATA {handler} {len(data)}\r\n'.encode() + data)

    def _ask(self, request):
        """Send a request; an error's lines but the last have a ``-``."""
        self._socket.sendall(request)
        lines = [self._answers.readline().decode().strip()]
        while lines[-1][3:4] == '-':
            lines.append(self._answers.readline().decode().strip())
        if not lines[-1].startswith('2'):
            raise errors.LabError('; '.join(lines))

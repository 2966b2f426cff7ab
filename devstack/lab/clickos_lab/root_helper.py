# SPDX-License-Identifier: Apache-2.0
"""Root for a service that is not root, without a setuid program.

``root_helper.py serve SOCKET UID WRAPPER CONFIG SERVICE...`` runs as root. It
starts SERVICE and ends with it. ``root_helper.py ask SOCKET COMMAND...`` has
it run ``WRAPPER CONFIG COMMAND...``. Only UID can open SOCKET. The wrapper
decides which commands are allowed; it has the files and the exit status of
the one who asks.
"""

import contextlib
import json
import os
import socket
import subprocess
import sys
import threading

_STDIO = (0, 1, 2)
#: A request's bytes.
_LONGEST = 65536
#: The status of a command that did not run, as sh(1) has it.
_NOT_RUN = 126


def serve(path, uid, wrapper, config, *service):
    """Start a service and run what it asks for; return its exit status."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        os.umask(0o177)
        listener.bind(path)
        os.chown(path, int(uid), -1)
        os.umask(0o022)
        listener.listen()
        threading.Thread(target=_accept, args=(listener, wrapper, config),
                         daemon=True).start()
        return subprocess.run(service).returncode


def _accept(listener, *wrapper):
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=_answer, args=(connection, wrapper),
                         daemon=True).start()


def _answer(connection, wrapper):
    """Run one command and tell its exit status."""
    with connection:
        request, stdio, flags, _ = socket.recv_fds(
            connection, _LONGEST, len(_STDIO))
        try:
            status = _run([*wrapper, *_arguments(request, stdio, flags)],
                          *stdio)
        except (OSError, ValueError) as e:
            print(f'root helper: {e}', file=sys.stderr, flush=True)
            status = _NOT_RUN
        finally:
            for fd in stdio:
                os.close(fd)
        with contextlib.suppress(OSError):
            connection.send(str(status).encode())


def _arguments(request, stdio, flags):
    found = json.loads(request)
    if (flags & (socket.MSG_TRUNC | socket.MSG_CTRUNC)
            or len(stdio) != len(_STDIO) or not isinstance(found, list)
            or not all(isinstance(word, str) for word in found)):
        raise ValueError('request: a list of strings and 3 files are needed')
    return found


def _run(command, stdin, stdout, stderr):
    return subprocess.run(command, stdin=stdin, stdout=stdout,
                          stderr=stderr).returncode


def ask(path, *command):
    """Have a command run as root; return its exit status."""
    request = json.dumps(command).encode()
    if len(request) > _LONGEST:
        raise ValueError(f'{command[0]}: {len(request)} bytes of arguments '
                         f'are more than {_LONGEST}')
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
        connection.connect(path)
        socket.send_fds(connection, [request], _STDIO)
        return int(connection.recv(16) or _NOT_RUN)


if __name__ == '__main__':
    sys.exit({'serve': serve, 'ask': ask}[sys.argv[1]](*sys.argv[2:]) & 0xff)

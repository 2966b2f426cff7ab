# SPDX-License-Identifier: Apache-2.0
"""tacker-server on a UNIX socket: its own options know TCP only.

Run as a program: ``tacker_server.py SOCKET --config-file FILE``.
"""

import os
import socket
import sys

import eventlet

eventlet.monkey_patch()

from tacker.cmd.eventlet import tacker_server  # noqa: E402
from tacker import wsgi  # noqa: E402


def main():
    """Replace the one function of Tacker that opens its socket."""
    path = sys.argv.pop(1)

    def listen(_server, _host, _port, backlog):
        if os.path.exists(path):
            os.unlink(path)     # of a server that ended before this one
        sock = eventlet.listen(path, family=socket.AF_UNIX, backlog=backlog)
        # The folder of the socket lets in no account but the front.
        os.chmod(path, 0o666)  # nosec B103
        return sock

    wsgi.Server._get_socket = listen
    tacker_server.main()


if __name__ == '__main__':
    main()

# SPDX-License-Identifier: Apache-2.0
"""Sends what ``frames.py`` makes for port ``plain`` and its judge forbids.

Run in a namespace: ``attack_frames.py FRAMES_PY SEED COUNT``.
"""

import socket
import subprocess
import sys


def main(*arguments):
    """Send one seed's frames."""
    out = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    out.bind(('eth0', 0))
    command = [sys.executable, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE,
                          text=True) as maker:
        for line in maker.stdout:
            port, verdict, _, frame = line.split()
            if (port, verdict) == ('plain', 'drop'):
                out.send(bytes.fromhex(frame))
    return maker.returncode


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))

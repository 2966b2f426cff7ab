# SPDX-License-Identifier: Apache-2.0
"""The services of a host that DevStack's plugin installed: systemd runs them.

The plugin writes the beginning of their units' names into a file of the
state folder.
"""

import time

from clickos_lab import errors
from clickos_lab import shell

_AWAIT_S = 30


def known(state):
    """Return whether systemd runs the host's services."""
    return _file(state).exists()


def restart(state, name):
    """Kill a service, as a crash would, and start it again.

    :raises LabError: if its socket does not come back
    """
    unit = f'{_file(state).read_text().strip()}{name}.service'
    socket = state.run / name / f'{name}.sock'
    shell.output(['systemctl', 'kill', '--kill-who=main', '-s', 'KILL', unit])
    socket.unlink(missing_ok=True)
    shell.output(['systemctl', 'restart', unit])
    deadline_s = time.monotonic() + _AWAIT_S
    while not socket.is_socket():
        if time.monotonic() > deadline_s:
            raise errors.LabError(f'{unit}: no socket {socket} after '
                                  f'{_AWAIT_S} s; journalctl -u {unit}')
        time.sleep(0.1)


def _file(state):
    return state.root / 'units'

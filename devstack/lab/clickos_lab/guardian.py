# SPDX-License-Identifier: Apache-2.0
"""A process that cleans up behind a program that was killed.

It runs as a program of its own, so it imports nothing of ours.
"""

import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

_DONE = 'done'
#: Killed processes are gone a moment later; new ones come from those that
#: were not killed yet.
_ROUNDS, _PAUSE_S = 100, 0.05


class Guardian:
    """Ends the processes of a folder once this process is gone.

    :param folder: its processes have it in their command line, or map a
        file of it
    :param stack: an ExitStack, at whose end there is nothing to clean up
    """

    def __init__(self, folder, stack):
        self._process = subprocess.Popen(
            [sys.executable, '-I', __file__, str(folder)],
            stdin=subprocess.PIPE, start_new_session=True, text=True)
        stack.callback(self._end)

    def link(self, name):
        """Delete this interface, too, if this process is killed."""
        self._tell(name)

    def _end(self):
        self._tell(_DONE)
        self._process.stdin.close()
        self._process.wait()

    def _tell(self, line):
        self._process.stdin.write(f'{line}\n')
        self._process.stdin.flush()


def main(folder):
    """Wait for the end of the program that holds standard input open."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    lines = sys.stdin.read().split()
    if _DONE in lines:
        return
    for _ in range(_ROUNDS):
        if not (pids := _pids(folder)):
            break
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        time.sleep(_PAUSE_S)
    for name in lines:
        subprocess.run(['ip', 'link', 'delete', name],
                       stderr=subprocess.DEVNULL)
    shutil.rmtree(folder, ignore_errors=True)


def _pids(folder):
    """Return the processes of a folder, without this one."""
    return [int(entry.name) for entry in pathlib.Path('/proc').iterdir()
            if entry.name.isdigit() and int(entry.name) != os.getpid()
            and _uses(entry, f'{folder}/'.encode())]


def _uses(entry, folder):
    """Return whether a process in proc(5) uses a folder."""
    try:
        return folder in (entry / 'cmdline').read_bytes() \
            or folder in (entry / 'maps').read_bytes()
    except OSError:
        return False


if __name__ == '__main__':
    main(sys.argv[1])

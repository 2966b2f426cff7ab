# SPDX-License-Identifier: Apache-2.0
"""A shell in which the commands of one page run, one after the other."""

import contextlib
import os
import select
import signal
import subprocess
import time

#: Reads statements from 9 and writes their statuses to 8. Variables and
#: functions of a statement last. A signal does not end the reading.
_LOOP = r"""
trap : INT
while :; do
    IFS= read -r -d '' -u 9 statement
    case $? in 0) ;; 1) exit ;; *) continue ;; esac
    eval "$statement" </dev/null 8>&- 9<&-
    printf '%d\n' $? >&8
done
"""
#: A comment with these words says that a person ends the command.
ENDLESS = 'until Ctrl-C'
#: How long such a command runs before the suite does so.
_RUNS_S = 6


class Console:
    """A bash with an environment, in a folder; its output goes to a file."""

    def __init__(self, folder, env, log):
        self._log = open(log, 'ab')
        theirs_in, self._in = os.pipe()
        self._out, theirs_out = os.pipe()
        # Pipes of any numbers become 9 and 8 of the shell.
        start = f'exec 9<&{theirs_in} 8>&{theirs_out}{_LOOP}'
        # A run in the background ignores Ctrl-C, and so would the commands.
        self._shell = subprocess.Popen(
            ['env', '--default-signal=INT', 'bash', '-c', start], cwd=folder,
            env=env, start_new_session=True, stdin=subprocess.DEVNULL,
            stdout=self._log, stderr=self._log,
            pass_fds=(theirs_in, theirs_out))
        os.close(theirs_in)
        os.close(theirs_out)

    def __enter__(self):
        return self

    def __exit__(self, *_exception):
        os.close(self._in)
        self._kill()
        self._shell.wait()
        os.close(self._out)
        self._log.close()

    def run(self, statement, limit_s=60):
        """Run a statement; return None, or why it is a failure."""
        self._log.write(f'$ {statement}\n'.encode())
        self._log.flush()
        try:
            os.write(self._in, statement.encode() + b'\0')
        except BrokenPipeError:
            return 'the shell has ended'
        if ENDLESS in statement:
            return self._run_for_a_while()
        status = self._status(limit_s)
        if status is None:
            self._kill()
            return f'not done after {limit_s} s'
        return f'exit status {status}' if status else None

    def _run_for_a_while(self):
        status = self._status(_RUNS_S)
        if status is not None:
            return f'ended by itself with exit status {status}'
        self._press_ctrl_c()
        if self._status(30) is None:
            self._kill()
            return 'does not end after Ctrl-C'
        return None

    def _status(self, timeout_s):
        """Return the status of what runs, None if it still does."""
        deadline_s, text = time.monotonic() + timeout_s, b''
        while not text.endswith(b'\n'):
            left_s = max(0, deadline_s - time.monotonic())
            if not select.select([self._out], [], [], left_s)[0]:
                return None
            read = os.read(self._out, 16)
            if not read:
                return self._shell.wait()
            text += read
        return int(text)

    def _press_ctrl_c(self):
        """Interrupt what the shell runs, not the shell."""
        session = subprocess.run(
            ['ps', '-o', 'pid=', '-s', str(self._shell.pid)],
            capture_output=True, text=True, check=True).stdout.split()
        for pid in map(int, session):
            if pid != self._shell.pid:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGINT)

    def _kill(self):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._shell.pid, signal.SIGKILL)

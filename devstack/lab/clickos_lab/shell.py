# SPDX-License-Identifier: Apache-2.0
"""Running other programs, their output in a log file."""

import os
import subprocess
import time

from clickos_lab import errors
from clickos_lab import log

#: A silent program longer than this gets a sign of life on the terminal.
_STILL_RUNNING_S = 15


def environment(state, **extra):
    """Return a clean environment for programs of the lab.

    Nothing of the caller's OpenStack, Python or proxy settings reaches
    them; the lab talks to the loopback only.
    """
    path = f'{state.venv}/bin:/usr/local/sbin:/usr/local/bin:' \
        '/usr/sbin:/usr/bin:/sbin:/bin'
    if state.authority.exists():
        extra = {'REQUESTS_CA_BUNDLE': str(state.authority), **extra}
    return {'PATH': path, 'HOME': str(state.data / 'home'),
            'LANG': 'C.UTF-8', 'PYTHONWARNINGS': 'ignore', 'no_proxy': '*',
            'CLICKOS_STATE': str(state.root), **state.variables, **extra}


def run(arguments, log_file, env=None, cwd=None, timeout_s=600, quiet=False):
    """Run a program to its end, its output appended to a log file.

    :param quiet: do not tell the terminal that it is still running.
    :raises LabError: with the end of the log if it fails or takes longer
        than timeout_s seconds.
    """
    arguments = [str(a) for a in arguments]
    log_file.parent.mkdir(parents=True, exist_ok=True)
    with open(log_file, 'ab') as output:
        try:
            process = subprocess.Popen(
                arguments, stdin=subprocess.DEVNULL, stdout=output,
                stderr=subprocess.STDOUT, env=env, cwd=cwd)
        except OSError as e:
            raise errors.LabError(f'{arguments[0]}: {e.strerror}')
        status = wait(process, timeout_s, quiet)
    if status != 0:
        raise errors.LabError(
            f'{" ".join(arguments[:4])} failed ({status}); see {log_file}:\n'
            + tail(log_file))


def wait(process, timeout_s, quiet=False):
    """Wait for a program, and tell the terminal that it is still running.

    :returns: its status, or a text if it took longer and was ended
    """
    began_s = time.time()
    try:
        while time.time() - began_s < timeout_s:
            try:
                return process.wait(timeout=_STILL_RUNNING_S)
            except subprocess.TimeoutExpired:
                if not quiet:
                    name = os.path.basename(process.args[0])
                    log.info(f'  {name} is still at work')
        return f'not done after {timeout_s} s'
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait(timeout=30)


def output(arguments, env=None, timeout_s=60):
    """Run a program and return its standard output as text.

    :raises LabError: if it fails.
    """
    arguments = [str(a) for a in arguments]
    try:
        done = subprocess.run(
            arguments, stdin=subprocess.DEVNULL, capture_output=True,
            text=True, env=env, timeout=timeout_s)
    except (OSError, subprocess.TimeoutExpired) as e:
        raise errors.LabError(f'{arguments[0]}: {e}')
    if done.returncode != 0:
        raise errors.LabError(
            f'{" ".join(arguments)} failed ({done.returncode}): '
            f'{done.stderr.strip()[-2000:]}')
    return done.stdout


def tail(path, lines=12):
    """Return the last lines of a text file, indented."""
    with open(path, 'rb') as f:
        f.seek(max(0, path.stat().st_size - 16384))
        text = f.read().decode(errors='replace')
    return '\n'.join('    ' + line for line in text.splitlines()[-lines:])

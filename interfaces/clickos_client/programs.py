# SPDX-License-Identifier: Apache-2.0
"""Runs one of Click's programs next to a command."""

import subprocess

_TIMEOUT_S = 60


def run(command, text, error):
    """Return a program that has ended, with its output as text.

    :param text: its standard input
    :param error: the exception for a program that does not run or end
    """
    try:
        return subprocess.run(
            command, input=text, encoding='utf-8', errors='replace',
            capture_output=True, timeout=_TIMEOUT_S)
    except OSError as exc:
        raise error(f'{command[0]}: {exc.strerror}')
    except subprocess.TimeoutExpired:
        raise error(f'{command[0]}: not ready after {_TIMEOUT_S} s')

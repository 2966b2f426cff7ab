# SPDX-License-Identifier: Apache-2.0
"""The program click-check, which knows the element classes of a guest."""

import re
import subprocess

from osc_lib import exceptions

PROGRAM = 'click-check'
#: A line of the program.
PLACE = re.compile(r'(?P<file>.+?):(?P<line>[0-9]+):(?P<column>[0-9]+): '
                   r'(?P<fault>.*)\Z')
_TIMEOUT_S = 60
_VARIABLE = re.compile(r'[A-Za-z_][A-Za-z0-9_]*=.*', re.DOTALL)


def faults(program, text, vifs, variables=()):
    """Return what is wrong with a configuration, one line each.

    :param program: name or path of click-check
    :param vifs: interfaces of the guest
    :param variables: texts NAME=VALUE
    :raises exceptions.CommandError: if the program cannot be used
    """
    for each in variables:
        if not _VARIABLE.fullmatch(each):
            raise exceptions.CommandError(
                f'{each!r}: expected NAME=VALUE')
    done = _run([program, '--guest', '--no-warnings', '--vifs', str(vifs),
                 '--file', '-', *variables], text)
    lines = done.stderr.splitlines()
    if done.returncode not in (0, 1) or bool(done.returncode) != bool(lines):
        raise exceptions.CommandError(
            f'{program}: ended with status {done.returncode}:'
            f' {done.stderr[:400].strip()}')
    return lines


def _run(command, text):
    try:
        return subprocess.run(
            command, input=text, encoding='utf-8', errors='replace',
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            timeout=_TIMEOUT_S)
    except OSError as exc:
        raise exceptions.CommandError(
            f'{command[0]}: {exc.strerror}; "make click" builds the program,'
            ' and --program names it')
    except subprocess.TimeoutExpired:
        raise exceptions.CommandError(
            f'{command[0]}: not ready after {_TIMEOUT_S} s')

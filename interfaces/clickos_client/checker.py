# SPDX-License-Identifier: Apache-2.0
"""The program click-check, which knows the element classes of a guest."""

import re
import subprocess

PROGRAM = 'click-check'
#: A line of the program.
PLACE = re.compile(r'(?P<file>.+?):(?P<line>[0-9]+):(?P<column>[0-9]+): '
                   r'(?P<fault>.*)\Z')
_TIMEOUT_S = 60
_VARIABLE = re.compile(r'[A-Za-z_][A-Za-z0-9_]*=.*', re.DOTALL)


class CheckerError(Exception):
    """The program cannot be used: its name and the reason."""


def faults(program, text, vifs, variables=(), before=()):
    """Return what is wrong with a configuration, one line each.

    :param program: name or path of click-check
    :param vifs: interfaces of the guest
    :param variables: texts NAME=VALUE
    :param before: a command that runs the program, such as prlimit
    :raises CheckerError: if the program cannot be used
    """
    for each in variables:
        if not _VARIABLE.fullmatch(each):
            raise CheckerError(f'{each!r}: expected NAME=VALUE')
    done = _run([*before, program, '--guest', '--no-warnings', '--vifs',
                 str(vifs), '--file', '-', *variables], text)
    lines = done.stderr.splitlines()
    if done.returncode not in (0, 1) or bool(done.returncode) != bool(lines):
        raise CheckerError(
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
        raise CheckerError(f'{command[0]}: {exc.strerror}')
    except subprocess.TimeoutExpired:
        raise CheckerError(f'{command[0]}: not ready after {_TIMEOUT_S} s')

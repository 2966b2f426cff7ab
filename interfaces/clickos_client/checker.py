# SPDX-License-Identifier: Apache-2.0
"""The program click-check, which knows the element classes of a guest."""

import re

from clickos_client import programs

PROGRAM = 'click-check'
#: A line of the program.
PLACE = re.compile(r'(?P<file>.+?):(?P<line>[0-9]+):(?P<column>[0-9]+): '
                   r'(?P<fault>.*)\Z')
_VARIABLE = re.compile(r'[A-Za-z_][A-Za-z0-9_]*=.*', re.DOTALL)


class CheckerError(Exception):
    """The program cannot be used: its name and the reason."""


class Ended(CheckerError):
    """A signal ended the program, as at a limit of its time."""


class ConfigurationError(Exception):
    """The configuration is wrong: the program's lines."""


def groups(program, text, run=programs.run):
    """Return {group of elements: a class of it that a configuration has}.

    :param program: name or path of click-check
    :param run: runs it, as programs.run() does
    :raises ConfigurationError: if no guest has a class, or the text is wrong
    :raises CheckerError: if the program cannot be used
    """
    done = run([program, '--groups', '--guest', '--no-warnings', '--file',
                '-'], text, CheckerError)
    first = done.stderr.partition('\n')[0]
    # Programs that set limits before it have the same status for a failure.
    if done.returncode == 1 and PLACE.match(first):
        raise ConfigurationError(done.stderr.strip())
    if done.returncode:
        raise (Ended if done.returncode < 0 else CheckerError)(
            f'{program}: ended with status {done.returncode}:'
            f' {done.stderr[:400].strip()}')
    return dict(line.split(' ', 1) for line in done.stdout.splitlines())


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
    done = programs.run(
        [*before, program, '--guest', '--no-warnings', '--vifs', str(vifs),
         '--file', '-', *variables], text, CheckerError)
    lines = done.stderr.splitlines()
    if done.returncode not in (0, 1) or bool(done.returncode) != bool(lines):
        raise CheckerError(
            f'{program}: ended with status {done.returncode}:'
            f' {done.stderr[:400].strip()}')
    return lines

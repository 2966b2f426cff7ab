# SPDX-License-Identifier: Apache-2.0
"""The program click-check for the commands."""

from clickos_client import checker
from osc_lib import exceptions

PROGRAM = checker.PROGRAM
PLACE = checker.PLACE


def faults(program, text, vifs, variables=()):
    """Return what is wrong with a configuration, one line each.

    :raises exceptions.CommandError: if the program cannot be used
    """
    try:
        return checker.faults(program, text, vifs, variables)
    except checker.CheckerError as exc:
        raise exceptions.CommandError(
            f'{exc}; "make click" builds the program, and --program names'
            ' another one')

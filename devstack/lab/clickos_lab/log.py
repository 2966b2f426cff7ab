# SPDX-License-Identifier: Apache-2.0
"""Progress on standard output, each line with the seconds elapsed."""

import contextlib
import os
import sys
import time

#: A later stage is another process; the clock continues from the first.
_START_VARIABLE = 'CLICKOS_LAB_START'
_start_s = float(os.environ.setdefault(_START_VARIABLE, str(time.time())))


def elapsed_s():
    """Return the seconds since the command was started."""
    return time.time() - _start_s


def info(text):
    """Print one line of progress."""
    print(f'[{elapsed_s():6.1f} s] {text}', flush=True)


def warn(text):
    """Print one line to standard error."""
    print(f'[{elapsed_s():6.1f} s] {text}', file=sys.stderr, flush=True)


@contextlib.contextmanager
def step(text):
    """Print a line at the start and one with the duration at the end."""
    info(f'{text} ...')
    began_s = time.time()
    yield
    info(f'{text}: done in {time.time() - began_s:.1f} s')

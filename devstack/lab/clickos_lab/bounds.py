# SPDX-License-Identifier: Apache-2.0
"""The bounds of docs/promises.md, which tests hold.

They stand in docs/bounds.toml, or in the file that CLICKOS_BOUNDS names.
"""

import os
import pathlib
import tomllib

from clickos_lab import paths

FILE = paths.REPO / 'docs/bounds.toml'
#: Names another file, so that a program can show that a test fails.
VARIABLE = 'CLICKOS_BOUNDS'
MAX, MIN = 'max_', 'min_'


def path():
    """Return the path of the file that holds the bounds."""
    return pathlib.Path(os.environ.get(VARIABLE) or FILE)


def read():
    """Return {key: bound}.

    :raises ValueError: naming a key without a kind or a number
    """
    found = tomllib.loads(path().read_text())
    for key, bound in found.items():
        if not key.startswith((MAX, MIN)):
            raise ValueError(f'{key}: a key begins with {MAX} or {MIN}')
        if isinstance(bound, bool) or not isinstance(bound, int | float):
            raise ValueError(f'{key}: expected a number, got {bound!r}')
    return found


def hold(key, measured):
    """Check a measured value against the bound of a key.

    :raises AssertionError: with the key, the value and the bound
    :raises KeyError: if the file lacks the key
    """
    bound = read()[key]
    if key.startswith(MAX):
        word, is_held = 'at most', measured <= bound
    else:
        word, is_held = 'at least', measured >= bound
    if not is_held:
        raise AssertionError(f'{key}: {measured}, expected {word} {bound}')

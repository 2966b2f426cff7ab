# SPDX-License-Identifier: Apache-2.0
"""The bounds that docs/promises.md promises, from ``[clickos] bounds_path``.
"""

import tomllib

from tempest import config

CONF = config.CONF


def hold(key, measured):
    """Check a measured value against an upper bound.

    :raises AssertionError: with the key, the value and the bound
    :raises KeyError: if the file lacks the key
    """
    with open(CONF.clickos.bounds_path, 'rb') as file:
        bound = tomllib.load(file)[key]
    if measured > bound:
        raise AssertionError(
            f'{key}: {measured}, expected at most {bound}')

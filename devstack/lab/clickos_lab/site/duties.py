# SPDX-License-Identifier: Apache-2.0
"""The duties of the catalog's functions by RFC, from their tests."""

from clickos_lab.duties import rows

_HEAD = ('| duty | standard | functions |', '|---|---|---|')


def markdown(_repository):
    """Return a row for each duty, with the functions that have it."""
    return '\n'.join(['', *_HEAD, *(
        f'| {row.name} | {row.rfc} | {", ".join(row.vnfs)} |'
        for row in rows.DUTIES), ''])

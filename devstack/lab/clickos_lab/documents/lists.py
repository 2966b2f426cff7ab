# SPDX-License-Identifier: Apache-2.0
"""Blocks that do not run, and blocks that are known to fail.

``documents.toml`` lists them by page and name. The list of failures may only
shrink: a block on it that passes is a fault, and one that fails without being
on it, too.
"""

import dataclasses
import tomllib

from clickos_lab import paths

FILE = paths.REPO / 'devstack/lab/documents.toml'
#: Why a block may be left out.
REASONS = ('second host', 'hardware', 'ends the host')


@dataclasses.dataclass(frozen=True)
class Lists:
    """``left_out`` and ``failures`` map (page, name) to a reason."""

    left_out: dict
    failures: dict


def load(text=None):
    """Read the lists.

    :raises ValueError: if a block is left out for another reason
    """
    content = tomllib.loads(FILE.read_text() if text is None else text)
    left_out = _flat(content.get('left_out', {}))
    for (page, name), reason in left_out.items():
        if reason not in REASONS:
            raise ValueError(f'{page}: {name}: left out for {reason!r}, the '
                             f'reasons are {", ".join(REASONS)}')
    return Lists(left_out, _flat(content.get('failures', {})))


def _flat(pages):
    return {(page, name): reason for page, blocks in pages.items()
            for name, reason in blocks.items()}


def stale(lists, blocks, pages):
    """Return the entries for pages that no block of them matches."""
    known = {(block.page, block.name) for block in blocks}
    return [f'{page}: {name}: no such block' for page, name
            in (*lists.left_out, *lists.failures)
            if page in pages and (page, name) not in known]

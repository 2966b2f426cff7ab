# SPDX-License-Identifier: Apache-2.0
"""``python -m clickos_lab.duties VNF``: prints the duties of a function."""

import sys

from clickos_lab.duties import rows
from clickos_lab.vnf import csar


def main(names):
    """Print a line for each duty of the functions named; 0 when all exist."""
    known = csar.names()
    if not names or (unknown := sorted(set(names) - set(known))):
        wrong = f'{", ".join(unknown)}: no such function' if names \
            else 'no function named'
        print(f'error: {wrong}; there are {", ".join(known)}',
              file=sys.stderr)
        return 2
    for row in rows.DUTIES:
        if set(names) & set(row.vnfs):
            print(f'{row.name} ({row.rfc})')
    return 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))

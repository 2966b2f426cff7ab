# SPDX-License-Identifier: Apache-2.0
"""Every source file names its license, and one that we use."""

import re
import sys

from clickos_lab import checks
from clickos_lab import paths

#: Files without a place for a comment, or which are license texts.
_EXEMPT = re.compile(
    r'(^|/)(LICENSE|Cargo\.lock|\.gitignore)$|^LICENSES/|'
    r'\.(jsonl?|pcap|png|snap)$|/golden/.*(\.click|/[^./]+)$')
_LINE = re.compile(r'SPDX-License-Identifier: (\S+)')
_LICENSES = {'Apache-2.0', 'GPL-2.0-only', 'LGPL-2.1-only'}
#: The line stands at the top: after a #! line or an XML declaration.
_TOP_LINES = 3


def problem(name):
    """Return what is wrong with a file, or None."""
    with open(paths.REPO / name, errors='replace') as f:
        top = ''.join(line for _, line in zip(range(_TOP_LINES), f))
    found = _LINE.search(top)
    if not found:
        return f'{name}: no SPDX-License-Identifier in the first lines'
    if found[1] not in _LICENSES:
        return f'{name}: license {found[1]} is not one of ours'
    if found[1] != 'Apache-2.0' and not name.startswith('xen-patches/'):
        return f'{name}: only xen-patches/ may hold {found[1]}'


def main():
    """Check all files; 0 when all is well."""
    names = [n for n in checks.tracked() if not _EXEMPT.search(n)]
    problems = [p for n in names if (p := problem(n))]
    return checks.report(problems, len(names), 'files')


if __name__ == '__main__':
    sys.exit(main())

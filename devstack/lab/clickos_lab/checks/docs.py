# SPDX-License-Identifier: Apache-2.0
"""Documents name only paths that exist.

Checked are links to files in every Markdown page, and what the pages that
describe the tree name between backquotes.
"""

import pathlib
import re
import sys

from clickos_lab import checks
from clickos_lab import paths

#: Pages in which `a/path` always means a path from the root.
_TREE_PAGES = ('docs/architecture.md',)
_LINK = re.compile(r'\]\(([^)#\s]+)[^)]*\)')
_QUOTED_PATH = re.compile(r'`([a-z][\w.-]*/[\w./-]*)`')


def links(page, text):
    """Return the targets of a page's links, as paths from the root."""
    folder = pathlib.PurePosixPath(page).parent
    for target in _LINK.findall(text):
        if '://' not in target and not target.startswith('mailto:'):
            yield folder / target


def main():
    """Check all pages; 0 when all is well."""
    wanted = []
    for page in checks.tracked():
        if not page.endswith('.md'):
            continue
        text = (paths.REPO / page).read_text()
        wanted += [(page, target) for target in links(page, text)]
        if page in _TREE_PAGES:
            wanted += [(page, t) for t in _QUOTED_PATH.findall(text)]
    problems = [f'{page}: {target} does not exist' for page, target in wanted
                if not (paths.REPO / target).exists()]
    return checks.report(problems, len(wanted), 'paths')


if __name__ == '__main__':
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0
"""Documents name only paths that exist.

Checked are links to files in every Markdown page, and what the pages that
describe the tree name between backquotes. Pages for contributors may begin a
path anywhere, and also name code as `module.name`.
"""

import pathlib
import re
import sys

from clickos_lab import checks
from clickos_lab import paths

#: Pages in which `a/path` always means a path from the root.
_TREE_PAGES = ('docs/architecture.md',)
_STEPS = 'docs/contributor/add-'
#: Folders of others.
_FOREIGN = ('nova/',)
_LINK = re.compile(r'\]\(([^)#\s]+)[^)]*\)')
_QUOTED_PATH = re.compile(r'`([a-z][\w.-]*/[\w./-]*)`')

_QUOTED_CODE = re.compile(r'`(\w+)(?:\.|::)(\w+)(?=[`(])')


def links(page, text):
    """Return the targets of a page's links, as paths from the root."""
    folder = pathlib.PurePosixPath(page).parent
    for target in _LINK.findall(text):
        if '://' not in target and not target.startswith('mailto:'):
            yield folder / target


def steps(text, names):
    """List what a page of steps names and the tree does not have.

    :param names: all files, as paths from the root
    """
    lost = [path for path in _QUOTED_PATH.findall(text)
            if not path.startswith(_FOREIGN)
            and not any(f'/{path.strip("/")}/' in f'/{name}/'
                        for name in names)]
    for module, name in _QUOTED_CODE.findall(text):
        files = [each for each in names if _module(each) == module]
        is_file = any(place in f'/{each}' for each in names for place in (
            f'/{module}.{name}', f'/{module}/{name}.'))
        if files and not is_file and not _is_in(files, name):
            lost.append(f'{module}.{name}')
    return lost


def _is_in(files, word):
    return any(re.search(rf'\b{word}\b', (paths.REPO / each).read_text())
               for each in files)


def _module(path):
    """Return the name of a module of Python or Rust; '' of other files."""
    path = pathlib.PurePosixPath(path)
    if path.suffix not in ('.py', '.rs'):
        return ''
    return path.parent.name if path.stem in ('__init__', 'mod') else path.stem


def main():
    """Check all pages; 0 when all is well."""
    wanted, lost = [], []
    names = checks.tracked()
    for page in names:
        if not page.endswith('.md'):
            continue
        text = (paths.REPO / page).read_text()
        wanted += [(page, target) for target in links(page, text)]
        if page in _TREE_PAGES:
            wanted += [(page, t) for t in _QUOTED_PATH.findall(text)]
        if page.startswith(_STEPS):
            lost += [(page, each) for each in steps(text, names)]
    lost += [(page, target) for page, target in wanted
             if not (paths.REPO / target).exists()]
    problems = [f'{page}: {target} does not exist' for page, target in lost]
    return checks.report(problems, len(wanted), 'paths')


if __name__ == '__main__':
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0
"""Sphinx builds the site of all documents; any warning is a fault.

Sphinx warns about a link to a page or heading that does not exist, and about
a page that no table of contents names. It asks no other host.
"""

import subprocess
import sys

from clickos_lab import log
from clickos_lab import paths

CONFIGURATION = paths.REPO / 'docs'


def build(state, source=paths.REPO):
    """Build the site; return its first page, or None after a fault.

    :param state: paths.State; the site goes into its folder
    :param source: the folder with the pages
    """
    folder = state.root / 'site'
    done = subprocess.run(
        [sys.executable, '-m', 'sphinx', '-b', 'html', '-q',
         '-n', '-W', '--keep-going', '-c', CONFIGURATION,
         '-d', folder / 'doctrees', source, folder / 'html'])
    return None if done.returncode else folder / 'html/docs/index.html'


def main():
    """Build the site; 0 when all is well."""
    page = build(paths.State())
    if page:
        log.info(f'the site begins at {page}')
    return 0 if page else 1


if __name__ == '__main__':
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0
"""Doing a thing again only when what it is made of has changed."""

import hashlib

from clickos_lab import paths
from clickos_lab import shell


def digest(files, *more):
    """Return a hash over the contents and names of files, and texts."""
    total = hashlib.sha256()
    for path in sorted(files):
        total.update(f'{path}\0'.encode())
        total.update(hashlib.sha256(path.read_bytes()).digest())
    for text in more:
        total.update(f'{text}\0'.encode())
    return total.hexdigest()


def fresh(stamp, value):
    """Return whether the stamp file holds this value."""
    return stamp.exists() and stamp.read_text() == value


def tracked(*places):
    """Return the files of the repository below some places.

    New files count, and those that git ignores do not.
    """
    listed = shell.output(
        ['git', '-c', f'safe.directory={paths.REPO}', '-C', paths.REPO,
         'ls-files', '-z', '--cached', '--others', '--exclude-standard',
         '--', *places])
    files = (paths.REPO / name for name in listed.split('\0') if name)
    return [path for path in files if path.is_file()]

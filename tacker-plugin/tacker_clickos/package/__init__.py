# SPDX-License-Identifier: Apache-2.0
"""Judges a CSAR before Tacker stores, unpacks or parses it.

A package may reach neither the server's network nor its files nor run code
there, and costs a bounded amount of work.
"""

from tacker_clickos.package import archive
from tacker_clickos.package import definitions
from tacker_clickos.package import kind
from tacker_clickos.package import manifest
from tacker_clickos.package import scripts


#: One of them is at the root of an archive (SOL004, 4.1.2).
_AT_ROOT = ('TOSCA-Metadata', 'Definitions')


def check(stream, may_run=False):
    """Refuse a package that is not safe to give to Tacker.

    :param stream: a seekable file with the bytes of the CSAR
    :param may_run: whether the uploader may bring scripts that Tacker runs
        for a VNF that is not ClickOS'
    :returns: whether the package is ClickOS'
    :raises: PackageRefused naming file and cause
    """
    files = archive.read(stream)
    _check_root(files)
    manifest.check(files)
    is_ours = kind.is_ours(files)
    definitions.check(files, may_run and not is_ours)
    if not is_ours and not may_run:
        scripts.check(files)
    return is_ours


def _check_root(files):
    """Refuse an archive of a folder instead of what is in it."""
    roots = {name.partition('/')[0] for name in files}
    below = {name.split('/')[1] for name in files if '/' in name}
    if len(roots) == 1 and roots.isdisjoint(_AT_ROOT) \
            and not below.isdisjoint(_AT_ROOT):
        folder = roots.pop()
        raise archive.refused('the package', 'everything is in the folder '
                              '%s; zip what is in it: (cd %s && zip -r '
                              '../PACKAGE .)' % (folder, folder))

# SPDX-License-Identifier: Apache-2.0
"""Judges a CSAR before Tacker stores, unpacks or parses it.

A package may reach neither the server's network nor its files nor run code
there, and costs a bounded amount of work.
"""

from tacker_clickos.package import archive
from tacker_clickos.package import definitions
from tacker_clickos.package import manifest


def check(stream):
    """Refuse a package that is not safe to give to Tacker.

    :param stream: a seekable file with the bytes of the CSAR
    :raises: PackageRefused naming file and cause
    """
    files = archive.read(stream)
    manifest.check(files)
    definitions.check(files)

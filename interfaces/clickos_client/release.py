# SPDX-License-Identifier: Apache-2.0
"""The release of the programs that this package belongs to."""

import importlib.metadata
import re

PACKAGE = 'clickos-openstack'
#: The last minor release of each major one that has a successor: 1.0 follows
#: 0.3.
LAST_MINORS = {0: 3}
_NUMBER = re.compile('[0-9]{1,9}')


def version():
    """Return the installed version, 'unknown' in a tree that is not."""
    try:
        return importlib.metadata.version(PACKAGE)
    except importlib.metadata.PackageNotFoundError:
        return 'unknown'


def are_neighbors(one, other):
    """Return whether parts of two releases may work together.

    They may be of the same minor release, or of two that follow each other.
    A version that is unknown fits nothing but another unknown one, in a tree
    that is not installed.

    :param one: what a host reports, of any type
    """
    if 'unknown' in (one, other) or not isinstance(one, str):
        return one == other
    older, newer = sorted((_series(one), _series(other)))
    if older[0] == newer[0]:
        return newer[1] - older[1] <= 1
    return (older[1] == LAST_MINORS.get(older[0])
            and newer == (older[0] + 1, 0))


def _series(version_):
    """Return the first two numbers of a version, without its suffixes."""
    parts = version_.split('+')[0].split('.')[:2]
    return tuple(int(part) if _NUMBER.fullmatch(part) else 0
                 for part in (*parts, '0')[:2])


class Product:
    """The product as a report of oslo.reports names it."""

    @staticmethod
    def vendor_string():
        """Return who made it."""
        return 'ClickOS for OpenStack'

    @staticmethod
    def product_string():
        """Return its name."""
        return PACKAGE

    @staticmethod
    def version_string_with_package():
        """Return its version."""
        return version()

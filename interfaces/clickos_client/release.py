# SPDX-License-Identifier: Apache-2.0
"""The release of the programs that this package belongs to."""

import importlib.metadata

PACKAGE = 'clickos-openstack'


def version():
    """Return the installed version, 'unknown' in a tree that is not."""
    try:
        return importlib.metadata.version(PACKAGE)
    except importlib.metadata.PackageNotFoundError:
        return 'unknown'


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

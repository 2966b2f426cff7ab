# SPDX-License-Identifier: Apache-2.0
"""The operator's catalog, as the setting CLICKOS_CATALOG names it."""

from clickos_client import catalog
from django.conf import settings

from clickos_dashboard import exceptions


def configured():
    """Return whether there is a catalog."""
    return bool(_folder())


def entries():
    """List the packages of the folder by name."""
    return catalog.entries(_folder())


def content(name):
    """Return a package's bytes with a VNFD id of its own.

    :raises DescriptorError: if there is no such package, or it is damaged
    """
    try:
        return catalog.with_fresh_id(catalog.content(_folder(), name))
    except catalog.CatalogError as exc:
        raise exceptions.DescriptorError(str(exc))


def _folder():
    return getattr(settings, 'CLICKOS_CATALOG', None)

# SPDX-License-Identifier: Apache-2.0
"""The operator's catalog of packages, for all projects."""

import base64
import dataclasses

from clickos_client import catalog

from clickos_api import errors
from clickos_api import policy


class Catalog:
    """Lists packages and gives them out.

    :param folder: where they are; None for no catalog
    :param rules: policy.Policy
    """

    def __init__(self, folder, rules):
        self._folder = folder
        self._policy = rules

    def list(self, context):
        """List the packages; one that is damaged has no product."""
        self._policy.require(context, policy.CATALOG_SHOW,
                             context.project_id)
        return [_shown(each) for each in catalog.entries(self._folder)]

    def package(self, context, name):
        """Return a package with its bytes as base64."""
        self._policy.require(context, policy.CATALOG_SHOW,
                             context.project_id)
        try:
            content = catalog.content(self._folder, name)
        except catalog.CatalogError as exc:
            raise errors.NotFound(str(exc), code='no-such-package')
        return {'name': name, 'content': base64.b64encode(content).decode()}


def _shown(entry):
    found = dataclasses.asdict(entry)
    return {'name': found.pop('id'), 'description': found.pop('text'),
            **found}

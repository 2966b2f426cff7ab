# SPDX-License-Identifier: Apache-2.0
"""The operator's catalog of packages, for all projects."""

import base64
import dataclasses
import json
import typing

from clickos_client import catalog

from clickos_api import errors


#: Bytes that become base64 at a time, a multiple of three.
_PIECE = 48 * 1024


@dataclasses.dataclass(frozen=True)
class Package:
    """A package as a JSON text that is made while it is sent.

    :param file: open, for its owner to close
    :param size: bytes of the package
    """

    name: str
    file: typing.BinaryIO
    size: int

    @property
    def length(self):
        """The bytes of the text."""
        return sum(map(len, self._around())) + (self.size + 2) // 3 * 4

    def pieces(self):
        """Generate the text in pieces of a bounded size."""
        before, after = self._around()
        with self.file:
            yield before
            for at in range(0, self.size, _PIECE):
                piece = self.file.read(min(self.size - at, _PIECE))
                yield base64.b64encode(piece)
                if not piece:   # it became shorter: the text ends early
                    return
            yield after

    def _around(self):
        name = json.dumps(self.name)
        return (f'{{"package": {{"name": {name}, "content": "'.encode(),
                b'"}}\n')


class Catalog:
    """Lists packages and gives them out.

    :param folder: where they are; None for no catalog
    """

    def __init__(self, folder):
        self._folder = folder

    def list(self):
        """List the packages; one that is damaged has no product."""
        return [_shown(each) for each in catalog.entries(self._folder)]

    def package(self, name):
        """Return a Package, whose caller closes its file."""
        try:
            return Package(name, *catalog.opened(self._folder, name))
        except catalog.CatalogError as exc:
            raise errors.NotFound(str(exc), code='no-such-package')


def _shown(entry):
    found = dataclasses.asdict(entry)
    return {'name': found.pop('id'), 'description': found.pop('text'),
            **found}

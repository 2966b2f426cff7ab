# SPDX-License-Identifier: Apache-2.0
"""The operator's catalog: a folder of packages that users publish.

Tacker takes each VNFD id once in the whole cloud, so a package that is
published gets an id of its own.
"""

import dataclasses
import functools
import io
import os
import pathlib
import re
import stat
import uuid
import zipfile

from clickos_client import descriptor_reader

#: Packages of a folder that are listed.
MOST = 200
#: tacker_clickos refuses larger packages.
MAX_BYTES = 4 * 1024 * 1024
_ID = re.compile(rb'(?m)^(\s*descriptor_id: *)\S+$')


class CatalogError(Exception):
    """A package that cannot be published: its name and the reason."""


@dataclasses.dataclass(frozen=True)
class Entry:
    """A package of the folder; without a product it cannot be published."""

    id: str
    product: str
    provider: str
    version: str
    text: str


def entries(folder):
    """List the packages of a folder by name; none without a folder."""
    looks = [(path, _look(path)) for path in _paths(folder)]
    return [_entry(path, *look) for path, look in looks if look]


def content(folder, name):
    """Return a package's bytes.

    :raises CatalogError: if there is no such package, or it is too large
    """
    file, size = opened(folder, name)
    with file:
        return file.read(size)


def opened(folder, name):
    """Open a package; return the file and its size in bytes.

    :raises CatalogError: as content()
    """
    path = next((each for each in _paths(folder)
                 if each.stem == name and _look(each)), None)
    if path is None:
        raise CatalogError(f'{name[:64]}: no such package in the catalog')
    try:
        file = open(path, 'rb')
    except OSError as exc:
        raise CatalogError(f'{path.name}: {exc.strerror}')
    size = os.fstat(file.fileno()).st_size
    if size > MAX_BYTES:
        file.close()
        raise CatalogError(_too_large(path))
    return file, size


def with_fresh_id(csar):
    """Return a package's bytes with a VNFD id of its own.

    :raises CatalogError: if it is damaged
    """
    try:
        entry = descriptor_reader.entry(csar)
        found = descriptor_reader.files(csar)
    except descriptor_reader.Damaged as exc:
        raise CatalogError(str(exc))
    fresh = str(uuid.uuid4()).encode()
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, 'w', zipfile.ZIP_DEFLATED) as target:
        for info, text in found:
            if info.filename == entry:
                text, count = _ID.subn(rb'\g<1>' + fresh, text)
                if count != 1:
                    raise CatalogError(
                        f'{entry}: {count} lines descriptor_id, expected 1')
            target.writestr(info, text)
    return packed.getvalue()


def _paths(folder):
    return sorted(pathlib.Path(folder).glob('*.csar'))[:MOST] if folder else ()


def _look(path):
    """Return what tells whether a file has changed; None for no file."""
    try:
        found = path.stat()
    except OSError:     # it is gone by now, or a link to nothing
        return None
    return (found.st_mtime_ns, found.st_size) if stat.S_ISREG(
        found.st_mode) else None


@functools.lru_cache(MOST)
def _entry(path, _changed_ns, _size):
    try:
        csar = _bytes(path)
        product = descriptor_reader.product(csar)
        return Entry(path.stem, *product,
                     descriptor_reader.read(csar)['description'])
    except (descriptor_reader.Damaged, CatalogError) as exc:
        return Entry(path.stem, '', '', '', str(exc))
    except OSError as exc:      # its text has the folder
        return Entry(path.stem, '', '', '', f'{path.name}: {exc.strerror}')


def _bytes(path):
    with open(path, 'rb') as file:
        found = file.read(MAX_BYTES + 1)
    if len(found) > MAX_BYTES:
        raise CatalogError(_too_large(path))
    return found


def _too_large(path):
    return f'{path.name}: more than {MAX_BYTES} bytes'

# SPDX-License-Identifier: Apache-2.0
"""The operator's catalog: a folder of packages that users publish.

The setting CLICKOS_CATALOG names the folder. Tacker takes each VNFD id once
in the whole cloud, so a package that is published gets an id of its own.
"""

import dataclasses
import functools
import io
import pathlib
import re
import uuid
import zipfile

from django.conf import settings

from clickos_dashboard.api import descriptor_reader
from clickos_dashboard import exceptions
from clickos_dashboard.packages import onboarding

#: Packages of a folder that are listed.
MOST = 200
_ID = re.compile(rb'(?m)^(\s*descriptor_id: *)\S+$')


@dataclasses.dataclass(frozen=True)
class Entry:
    """A package of the folder; without a product it cannot be published."""

    id: str
    product: str
    provider: str
    version: str
    text: str


def configured():
    """Tell whether there is a catalog."""
    return bool(_folder())


def entries():
    """List the packages of the folder by name."""
    return [_entry(path, *_look(path)) for path in _paths()]


def content(name):
    """Return a package's bytes with a VNFD id of its own.

    :raises DescriptorError: if there is no such package, or it is damaged
    """
    path = next((each for each in _paths() if each.stem == name), None)
    if path is None:
        raise exceptions.DescriptorError(f'{name}: no such package')
    return _with_fresh_id(_bytes(path))


def _folder():
    return getattr(settings, 'CLICKOS_CATALOG', None)


def _paths():
    folder = _folder()
    return sorted(pathlib.Path(folder).glob('*.csar'))[:MOST] if folder else ()


def _look(path):
    """Return what tells whether a file has changed."""
    found = path.stat()
    return found.st_mtime_ns, found.st_size


@functools.lru_cache(MOST)
def _entry(path, _changed_ns, _size):
    try:
        csar = _bytes(path)
        product = descriptor_reader.product(csar)
        return Entry(path.stem, *product,
                     descriptor_reader.read(csar)['description'])
    except (descriptor_reader.Damaged, exceptions.DescriptorError,
            OSError) as exc:
        return Entry(path.stem, '', '', '', str(exc))


def _bytes(path):
    with open(path, 'rb') as file:
        found = file.read(onboarding.MAX_BYTES + 1)
    if len(found) > onboarding.MAX_BYTES:
        raise exceptions.DescriptorError(
            f'{path.name}: more than {onboarding.MAX_BYTES} bytes')
    return found


def _with_fresh_id(csar):
    try:
        entry = descriptor_reader.entry(csar)
    except descriptor_reader.Damaged as exc:
        raise exceptions.DescriptorError(str(exc))
    fresh = str(uuid.uuid4()).encode()
    packed = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(csar)) as source, \
            zipfile.ZipFile(packed, 'w', zipfile.ZIP_DEFLATED) as target:
        for info in source.infolist():
            text = source.read(info)
            if info.filename == entry:
                text, count = _ID.subn(rb'\g<1>' + fresh, text)
                if count != 1:
                    raise exceptions.DescriptorError(
                        f'{entry}: {count} lines descriptor_id, expected 1')
            target.writestr(info, text)
    return packed.getvalue()

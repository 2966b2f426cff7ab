# SPDX-License-Identifier: Apache-2.0
"""TOSCA.meta and manifests: which files they name."""

import re

from tacker_clickos.package import archive
from tacker_clickos.package import text
from tacker_clickos import urls

META = 'TOSCA-Metadata/TOSCA.meta'
ENTRY = 'Entry-Definitions'
#: Tacker splits a manifest so, and reads the blocks with one of these words.
_BLOCKS = re.compile(b'\n\n+')
_HASHED = (b'Algorithm:', b'Hash:')
_NAMES = ('Name', 'Source')


def check(files):
    """Refuse a package whose lists of files leave it.

    :param files: what archive.read returned
    :raises: PackageRefused
    """
    for name, content in files.items():
        if name.lower().endswith(('.meta', '.mf')):
            if b'\r' in content:
                raise archive.refused(name, 'its lines end with CR LF, and '
                                      'Tacker finds blocks between lines '
                                      'that end with LF; convert it: '
                                      "sed -i 's/\\r$//' FILE")
            for block in _BLOCKS.split(content):
                if any(word in block for word in _HASHED):
                    _check_block(name, text.load(name, block))
    if META in files:
        _check_entry(files, text.load(META, files[META], may_repeat=True))


def _check_block(place, block):
    for _keys, value in text.walk(block):
        if isinstance(value, str) and urls.looks_like_one(value):
            raise archive.refused(place, '%r is a URL; Tacker fetches '
                                  'nothing for a package'
                                  % value[:urls.MAX_SHOWN])
    for key in _NAMES:
        name = block.get(key) if isinstance(block, dict) else None
        if name is not None and not archive.is_name(name):
            raise archive.refused(place, '%s %r leaves the package'
                                  % (key, str(name)[:urls.MAX_SHOWN]))


def _check_entry(files, meta):
    entry = meta.get(ENTRY) if isinstance(meta, dict) else None
    if (not isinstance(entry, str) or entry not in files
            or not entry.endswith(('.yaml', '.yml'))):
        raise archive.refused(META, '%s %r is no YAML file of the package'
                              % (ENTRY, str(entry)[:urls.MAX_SHOWN]))
    _check_block(META, meta)

# SPDX-License-Identifier: Apache-2.0
"""The zip archive of a package: plain files with plain names, bounded."""

import posixpath
import re
import stat
import struct
import zipfile
import zlib

from tacker_clickos import exception

MAX_PACKAGE = 4 * 1024 * 1024
MAX_FILES = 256
MAX_UNPACKED = 16 * 1024 * 1024
MAX_NAME = 255
MAX_PARSED = 256 * 1024
#: Suffixes of the files Tacker parses; the others it only copies.
PARSED = ('.yaml', '.yml', '.mf', '.meta')
_NAME = re.compile(r'[A-Za-z0-9_][A-Za-z0-9_. +@()-]*'
                   r'(?:/[A-Za-z0-9_][A-Za-z0-9_. +@()-]*)*/?\Z')
#: Files that the file managers of macOS and Windows add to archives.
_OF_DESKTOP = re.compile(r'(?:^|/)(?:__MACOSX/|\._|\.DS_Store\Z|Thumbs\.db\Z|'
                         r'desktop\.ini\Z)')
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_DAMAGED = (EOFError, NotImplementedError, OSError, RuntimeError, ValueError,
            struct.error, zipfile.BadZipFile, zlib.error)


def read(stream):
    """Return {name: bytes, or None for a file that Tacker does not parse}.

    Every file is unpacked once, so that a damaged one is found here.

    :raises: PackageRefused
    """
    try:
        with zipfile.ZipFile(stream) as archive:
            members = archive.infolist()
            _check_all(members)
            return {member.filename: _content(archive, member)
                    for member in members if not member.is_dir()}
    except _DAMAGED as error:
        raise refused('the package', 'is not a zip archive that can be '
                      'unpacked: %s' % str(error)[:200])


def extract(stream, folder):
    """Unpack a package that read() took; return {name: bytes} of its YAML.

    :param folder: an empty folder
    """
    with zipfile.ZipFile(stream) as archive:
        archive.extractall(folder)  # nosec B202
        return {name: archive.read(name) for name in archive.namelist()
                if name.lower().endswith(('.yaml', '.yml'))}


def refused(place, reason):
    """Return the error for a file of a package."""
    return exception.PackageRefused(place=place, reason=reason)


def _check_all(members):
    if len(members) > MAX_FILES:
        raise refused('the package', '%d files, the limit is %d'
                      % (len(members), MAX_FILES))
    _check_size('when unpacked', members, MAX_UNPACKED)
    _check_size('of YAML and manifests', [
        member for member in members if _is_parsed(member)], MAX_PARSED)
    seen = set()
    for member in members:
        _check(member)
        name = member.filename.rstrip('/').lower()
        if name in seen:
            raise refused(member.filename, 'is in the package twice')
        seen.add(name)


def _check_size(what, members, limit):
    size = sum(member.file_size for member in members)
    if size > limit:
        raise refused('the package', '%d bytes %s, the limit is %d'
                      % (size, what, limit))


def _is_parsed(member):
    return member.filename.lower().endswith(PARSED)


def is_name(name):
    """Return whether this can be the name of a file in a package."""
    return (isinstance(name, str) and len(name) <= MAX_NAME
            and bool(_NAME.match(name))
            and posixpath.normpath(name) == name.rstrip('/'))


def _check(member):
    name = member.filename
    shown = repr(name[:80])
    if _OF_DESKTOP.search(name):
        raise refused(shown, 'was added by a desktop; take such files out: '
                      "zip -d PACKAGE '__MACOSX/*' '*.DS_Store' '*Thumbs.db'")
    if not is_name(name) or member.orig_filename != name:
        raise refused(shown, 'a name in a package is a relative path of '
                      'letters, digits, "_", ".", "-" and spaces, without '
                      '".." and with at most %d characters' % MAX_NAME)
    mode = member.external_attr >> 16
    if (stat.S_IFMT(mode) not in (0, stat.S_IFREG, stat.S_IFDIR)
            or mode & (stat.S_ISUID | stat.S_ISGID | stat.S_ISVTX)):
        raise refused(shown, 'mode %o: expected a plain file or folder'
                      % mode)
    if member.flag_bits & 1 or member.compress_type not in _METHODS:
        raise refused(shown, 'is encrypted or compressed by a method other '
                      'than deflate')


def _content(archive, member):
    """Unpack a file; its declared size bounds what zipfile gives."""
    keep = _is_parsed(member)
    kept = []
    with archive.open(member) as unpacked:
        while piece := unpacked.read(65536):
            if keep:
                kept.append(piece)
    return b''.join(kept) if keep else None

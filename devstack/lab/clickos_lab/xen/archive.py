# SPDX-License-Identifier: Apache-2.0
"""Writes a cpio archive (newc), the format of an initramfs.

Everything belongs to root and has no time: the same content gives the same
bytes.
"""

import os
import stat

from clickos_lab import errors


class Archive:
    """Entries of an archive, by name; a later one replaces an earlier."""

    def __init__(self):
        self._entries = {}

    def add_folder(self, name, mode=0o755):
        """Add a folder, and those it is in."""
        self._add(name, stat.S_IFDIR | mode, b'')

    def add_link(self, name, target):
        """Add a symbolic link."""
        self._add(name, stat.S_IFLNK | 0o777, target.encode())

    def add_bytes(self, name, content, mode=0o644):
        """Add a file with this content."""
        self._add(name, stat.S_IFREG | mode, content)

    def add_file(self, name, path):
        """Add a copy of a file, also if it is named by a symbolic link."""
        mode = 0o755 if os.access(path, os.X_OK) else 0o644
        self.add_bytes(name, path.read_bytes(), mode)

    def add_tree(self, name, folder):
        """Add everything in a folder, symbolic links as such."""
        for path in sorted(folder.rglob('*')):
            inner = f'{name}/{path.relative_to(folder)}'.lstrip('/')
            if path.is_symlink():
                self.add_link(inner, os.readlink(path))
            elif path.is_file():
                self.add_file(inner, path)

    def _add(self, name, mode, content):
        parent = os.path.dirname(name)
        if parent and parent not in self._entries:
            self.add_folder(parent)
        elif parent and not stat.S_ISDIR(self._entries[parent][0]):
            raise errors.LabError(f'{name}: {parent} is not a folder')
        self._entries[name] = (mode, content)

    def write(self, path):
        """Write the archive."""
        entries = sorted(self._entries.items())
        with open(path, 'wb') as f:
            for number, (name, (mode, content)) in enumerate(entries, 1):
                f.write(_entry(number, name, mode, content))
            f.write(_entry(0, 'TRAILER!!!', 0, b''))


def _entry(number, name, mode, content):
    """Return one entry: header, name, content, each padded to 4 bytes."""
    encoded = name.encode() + b'\0'
    fields = (number, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0,
              len(encoded), 0)
    header = b'070701' + b''.join(b'%08x' % field for field in fields)
    return _padded(header + encoded) + _padded(content)


def _padded(data):
    return data + bytes(-len(data) % 4)

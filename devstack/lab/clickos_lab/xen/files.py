# SPDX-License-Identifier: Apache-2.0
"""Files that are in dom0 from the start: a tar archive as a disk.

A megabyte through the network costs a second of emulation; a disk is read in
no time. Each host has its own, and it may differ from that of the snapshot.
"""

import io
import tarfile

from clickos_lab import errors

#: Of the disk; dom0 learnt it when the snapshot was made.
SIZE_MIB = 128


class Files:
    """Files to put into dom0, by their absolute names."""

    def __init__(self):
        self._entries = {}

    def add(self, path, name, mode=0o644):
        """Add a copy of a file."""
        self.add_text(path.read_bytes(), name, mode)

    def add_text(self, text, name, mode=0o644):
        """Add a file with this content."""
        content = text.encode() if isinstance(text, str) else text
        self._entries[name.lstrip('/')] = (content, mode)

    def write(self, path):
        """Write the archive; return the script that unpacks it in dom0.

        :raises LabError: if it is larger than the disk
        """
        with tarfile.open(path, 'w') as archive:
            for name, (content, mode) in self._entries.items():
                entry = tarfile.TarInfo(name)
                entry.size, entry.mode = len(content), mode
                archive.addfile(entry, io.BytesIO(content))
        size = path.stat().st_size
        if size > SIZE_MIB << 20:
            raise errors.LabError(f'files for dom0: {size} bytes, at most '
                                  f'{SIZE_MIB} MiB')
        with open(path, 'ab') as f:
            f.truncate(SIZE_MIB << 20)
        # busybox's tar would read on to the end of the disk.
        return f'head -c {size} /dev/vda | tar -x -C /'

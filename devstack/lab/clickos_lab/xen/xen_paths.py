# SPDX-License-Identifier: Apache-2.0
"""Where the Xen host's parts lie: ``xen/`` in the state folder."""

import fcntl
import pathlib
import re

from clickos_lab import errors
from clickos_lab.xen import variants

#: Short, because a UNIX socket lies below the folder of a host.
_NAME = re.compile(r'[a-z0-9-]{1,10}')


class XenPaths:
    """The folders below ``xen/``; only their owner may look into them.

    They hold the keys that open dom0, and its memory.
    """

    def __init__(self, state):
        self.root = state.root / 'xen'
        self.log = state.log
        self.packages = self.root / 'packages'
        self.build = self.root / 'build'
        self.keys = self.root / 'keys'
        self.snapshots = {
            variants.STOCK: self.root / 'snapshot',
            variants.PATCHED: self.root / 'snapshot-patched'}
        self.hosts = self.root / 'run'
        self.xen = self.build / 'xen.elf'
        self.kernel = self.build / 'vmlinux.elf'
        self.initrd = self.build / 'dom0.cpio'

    def create(self):
        """Make the folders; may be called twice."""
        self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.root.chmod(0o700)
        for folder in (self.build, self.keys, self.hosts):
            folder.mkdir(exist_ok=True)

    def relative(self, path):
        """Return a path from ``root``, where QEMU runs.

        So no comma or blank of the state folder's name gets into its
        options, in which they mean something.
        """
        return path.relative_to(self.root)

    def lock(self):
        """Return an open file that keeps other builders waiting."""
        file = open(self.root / 'lock', 'w')
        fcntl.flock(file, fcntl.LOCK_EX)
        return file

    def host(self, name):
        """Return the paths of one host.

        :raises LabError: if the name is not 1 to 10 of a-z, 0-9, -
        """
        if not _NAME.fullmatch(name):
            raise errors.LabError(
                f'{name}: a Xen host is named with 1 to 10 of a-z, 0-9, -')
        return HostPaths(self.hosts / name)

    def names(self):
        """Return the names of the hosts there are, running or not."""
        return sorted(p.name for p in self.hosts.glob('*'))


class HostPaths:
    """The folder of one host; its processes live there too."""

    def __init__(self, root: pathlib.Path):
        self.root = root
        self.pid = root / 'pid'
        self.log = root / 'log'
        self.qmp = root / 'qmp'
        self.console = root / 'console.log'
        self.files = root / 'files.tar'
        self.ssh_config = root / 'ssh_config'

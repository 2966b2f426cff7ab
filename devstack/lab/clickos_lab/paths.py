# SPDX-License-Identifier: Apache-2.0
"""Where everything of the lab lives: one state folder, ignored by git."""

import os
import pathlib
import shutil

from clickos_lab import errors

REPO = pathlib.Path(__file__).resolve().parents[3]

#: A file that tells a folder is a state folder of ours, so that nothing
#: else can ever be removed by ``clean``.
MARK = '.clickos-state'

#: The longest path below the state folder that is a UNIX socket.
LONGEST_SOCKET = 'run/xenstored/socket_ro'
#: sizeof(sockaddr_un.sun_path) less the final NUL, unix(7).
SOCKET_PATH_MAX = 107


class State:
    """The state folder and the places below it.

    :param root: the folder; by default ``CLICKOS_STATE`` or ``.state`` in
        the repository.
    :raises LabError: if UNIX sockets below it would have too long paths.
    """

    def __init__(self, root=None):
        default = REPO / '.state'
        chosen = root or os.environ.get('CLICKOS_STATE') or default
        self.root = pathlib.Path(chosen).expanduser().resolve()
        #: the request for a lab with TLS, which the next start follows
        self.wants_tls = os.environ.get('CLICKOS_TLS', '') not in ('', '0')
        self._is_default = self.root == default.resolve()
        self._check_length()
        self.etc = self.root / 'etc'
        self.log = self.root / 'log'
        self.run = self.root / 'run'
        self.data = self.root / 'data'
        self.pid = self.run / 'pid'
        self.tmp = self.run / 'tmp'
        self.passwd = self.run / 'passwd'
        self.uv = self.root / 'uv'
        self.venv = self.root / 'venv'
        self.target = self.root / 'target'
        self.bin = self.root / 'bin'
        self.static = self.root / 'static'
        self.catalog = self.root / 'catalog'
        self.noxen = self.root / 'noxen'
        self.settings = self.root / 'settings.json'
        #: the certificate that a lab with TLS trusts, and no other one
        self.authority = self.etc / 'tls/ca.pem'
        self.packages = self.root / 'packages-added'
        #: what the accounts of services see besides the machine's files
        self.visible = self.root
        #: more variables of all programs
        self.variables = {}

    def _check_length(self):
        longest = self.root / LONGEST_SOCKET
        if len(os.fsencode(longest)) > SOCKET_PATH_MAX:
            raise errors.LabError(
                f'{self.root}: the path is too long: {longest} would be a '
                f'UNIX socket of {len(os.fsencode(longest))} bytes and the '
                f'system takes {SOCKET_PATH_MAX}; set CLICKOS_STATE to a '
                'shorter path')

    def create(self):
        """Make the folder and mark it as ours; may be called twice."""
        if self.root.is_dir() and any(self.root.iterdir()):
            self._require_ours()
        for folder in (self.root, self.log):
            folder.mkdir(parents=True, exist_ok=True)
        (self.root / MARK).touch()

    def _require_ours(self):
        if not self._is_default and not (self.root / MARK).exists():
            raise errors.LabError(
                f'{self.root}: not empty and not a state folder of this '
                'project; set CLICKOS_STATE to a folder that does not exist')

    def remove(self):
        """Remove the folder with everything in it."""
        if self.root.is_dir():
            self._require_ours()
            shutil.rmtree(self.root)

    def binary(self, name):
        """The path of a program built from our Rust workspace."""
        return self.target / 'release' / name

    def tool(self, name):
        """The path of a program of the virtual environment."""
        return self.venv / 'bin' / name

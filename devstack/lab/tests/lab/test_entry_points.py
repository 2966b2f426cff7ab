# SPDX-License-Identifier: Apache-2.0
"""The services find the list of entry points."""

import os
import pathlib
import subprocess
import tempfile
import unittest

from clickos_lab import accounts
from clickos_lab import entry_points
from clickos_lab import paths
from clickos_lab import settings

#: Tells whether stevedore finds a list.
_LOOK = """
import os, sys
from stevedore import _cache
name, _ = _cache._hash_settings_for_path(tuple(sys.path))
print('found', os.access(os.path.join(_cache._c._dir, name), os.R_OK),
      flush=True)
os._exit(0)
"""


class EntryPointsTest(unittest.TestCase):

    def setUp(self):
        self.state = paths.State()

    def _said(self, *command):
        """Return what a program says that starts as a service does."""
        state = self.state
        prefix = accounts.prefix(state, settings.Settings.load(state), 'nova')
        return subprocess.run(
            [*prefix, *map(str, command)], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            timeout=60, cwd=accounts.empty(state, 'nova'), env={
                'PATH': os.defpath,
                'XDG_CACHE_HOME': str(entry_points.folder(state))}).stdout

    def test_a_program_finds_the_list(self):
        folder = str(self.state.venv / 'bin')
        self.assertIn('found True', self._said(
            self.state.tool('python'), '-c',
            f'import sys; sys.path[0] = {folder!r}\n{_LOOK}'))

    def test_a_service_in_uwsgi_finds_the_list(self):
        with tempfile.NamedTemporaryFile('w', suffix='.py') as look:
            look.write(_LOOK)
            look.flush()
            os.chmod(look.name, 0o644)
            said = self._said(self.state.tool('uwsgi'), '--socket',
                              '127.0.0.1:0', '--wsgi-file', look.name)
        self.assertIn('found True', said)

    def test_services_cannot_change_the_list(self):
        folder = pathlib.Path(entry_points.folder(self.state))
        for path in (folder, *folder.rglob('*')):
            self.assertEqual((0, 0), (path.stat().st_uid,
                                      path.stat().st_mode & 0o022), path)


if __name__ == '__main__':
    unittest.main()

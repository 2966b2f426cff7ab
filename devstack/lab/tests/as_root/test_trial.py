# SPDX-License-Identifier: Apache-2.0
"""``make try``, as a newcomer runs it: with the system's Python alone."""

import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import unittest

from clickos_lab import bounds
from clickos_lab import paths

_PATIENCE_S = 900
_PYTHON = os.path.realpath(sys.executable)


class TrialTest(unittest.TestCase):

    def setUp(self):
        super().setUp()
        # all that a run makes outside of the state folder is below this one
        folder = self.enterContext(tempfile.TemporaryDirectory(prefix='try'))
        os.chmod(folder, 0o755)
        self.folder = pathlib.Path(folder)

    def start(self, *words):
        """Start ``make try``, in a process group of its own."""
        process = subprocess.Popen(
            ['make', '--no-print-directory', 'try', f'PYTHON={_PYTHON} -S',
             *words], cwd=paths.REPO, text=True, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            start_new_session=True,
            env={**os.environ, 'TMPDIR': str(self.folder)})
        self.addCleanup(process.__exit__, None, None, None)
        self.addCleanup(process.kill)
        return process

    def require_nothing_left(self, text):
        """Fail if namespaces, interfaces, files or processes are left.

        :param text: what the run printed
        """
        self.assertEqual([], list(self.folder.iterdir()))
        names = re.findall(r', namespace (\S+)', text)
        self.assertEqual(2, len(names), text)
        for name in names:
            self.assertFalse(os.path.exists(f'/run/netns/{name}'), text)
            self.assertFalse(os.path.exists(f'/sys/class/net/{name}o'), text)
        mark = os.fsencode(self.folder)
        self.assertEqual([], [
            entry.name for entry in pathlib.Path('/proc').iterdir()
            if entry.name.isdigit() and mark in _memory_and_words(entry)])

    def test_a_rule_blocks_and_a_ping_loses_nothing(self):
        text = self.start().communicate(timeout=_PATIENCE_S)[0]
        self.assertIn('all expectations were met', text)
        self.assertRegex(text, r'\n  HTTP with the rule +no answer  ok\n')
        self.assertRegex(text, r'\n  HTTP without the rule +200  ok\n')
        sent = re.search(r'\n  ping during both changes, lost of sent +'
                         r'(\d+)/(\d+)  ok\n', text)
        self.assertGreater(int(sent[2]), 20, text)
        bounds.hold('max_try_lost_pings', int(sent[1]))
        self.require_nothing_left(text)

    def test_the_shell_of_keep_has_the_tools(self):
        process = self.start('KEEP=1')
        text = process.communicate(
            'cosmos read firewall fw.config\nvale-ctl list\n',
            timeout=_PATIENCE_S)[0]
        self.assertEqual(0, process.returncode, text)
        self.assertIn('\nallow all\n', text)
        self.assertRegex(text, r'\nvale0 +4\n')
        self.require_nothing_left(text)

    def test_an_interrupted_run_leaves_nothing(self):
        process = self.start()
        seen = []
        for line in process.stdout:
            seen.append(line)
            if '5. a rule changes' in line:
                break
        os.killpg(process.pid, signal.SIGINT)       # as Ctrl-C does
        seen.append(process.communicate(timeout=60)[0])
        self.assertIn('interrupted', ''.join(seen))
        self.assertNotEqual(0, process.returncode)
        self.require_nothing_left(''.join(seen))


def _memory_and_words(entry):
    """Return the command line and the mapped files of a process."""
    found = b''
    for name in ('cmdline', 'maps'):
        try:
            found += (entry / name).read_bytes()
        except OSError:
            pass
    return found

# SPDX-License-Identifier: Apache-2.0
"""Weights of processes, with both versions of control groups."""

import pathlib
import tempfile
import unittest

from clickos_lab import shares


class SharesTest(unittest.TestCase):

    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)

    def write(self, **files):
        """Make files of a hierarchy, in whose names ``__`` is a slash."""
        for name, text in files.items():
            path = self.root / name.replace('__', '/').replace('_dot_', '.')
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def moved(self, folder):
        """Return the process that is in a group."""
        return (self.root / folder / 'g' / 'cgroup.procs').read_text()

    def test_version_2(self):
        self.write(cgroup_dot_controllers='cpu memory\n',
                   cgroup_dot_subtree_control='memory\n',
                   g__cpu_dot_weight='100')
        shares.prefer('g', 7, self.root)
        self.assertEqual('7', self.moved('.'))
        self.assertEqual('10000', (self.root / 'g/cpu.weight').read_text())
        self.assertEqual('+cpu', (
            self.root / 'cgroup.subtree_control').read_text())

    def test_version_1(self):
        self.write(cpu__cpu_dot_shares='1024', cpu__g__cpu_dot_shares='1024')
        shares.prefer('g', 7, self.root)
        self.assertEqual('7', self.moved('cpu'))
        self.assertEqual('262144', (
            self.root / 'cpu/g/cpu.shares').read_text())

    def test_both_versions_with_cpu_in_the_first(self):
        self.write(cgroup_dot_controllers='memory\n',
                   cgroup_dot_subtree_control='\n',
                   cpu__cpu_dot_shares='1024')
        shares.prefer('g', 7, self.root)
        self.assertEqual('7', self.moved('cpu'))

    def test_none_has_cpu(self):
        self.write(cgroup_dot_controllers='memory\n',
                   cgroup_dot_subtree_control='\n')
        shares.prefer('g', 7, self.root)
        self.assertFalse((self.root / 'g').exists())

# SPDX-License-Identifier: Apache-2.0
"""Programs that run as an account, from a folder that only root enters."""

import os
import stat
import subprocess

from clickos_lab import accounts
from tests.as_root import case


class AccountsTest(case.AccountsCase):

    def run_as(self, account, *command):
        return subprocess.run(
            [*accounts.prefix(self.state, self.settings, account), *command],
            capture_output=True, text=True, cwd='/')

    def test_the_uppermost_closed_folder_is_found(self):
        self.assertEqual(self.folder, accounts.closed(self.state.root))
        inner = self.state.root / 'a/b'
        inner.parent.mkdir(mode=0o700)
        self.assertEqual(self.folder, accounts.closed(inner))
        self.folder.chmod(0o711)
        self.assertIsNone(accounts.closed(self.state.root))
        self.assertEqual(inner.parent, accounts.closed(inner))

    def test_a_program_below_a_closed_folder_runs(self):
        program = self.state.root / 'a program'
        program.write_text('#!/bin/sh\nid -u\nid -un\n')
        program.chmod(0o755)
        done = self.run_as('keystone', program)
        self.assertEqual([str(self.settings.ids['keystone']), 'keystone'],
                         done.stdout.split(), done.stderr)

    def test_what_lies_beside_the_state_folder_is_not_there(self):
        (self.folder / 'secret').write_text('secret')
        (self.folder / 'secret').chmod(0o644)
        done = self.run_as('keystone', 'ls', '-A', self.folder)
        self.assertEqual('state', done.stdout.strip())

    def test_nothing_of_root_is_inherited(self):
        done = self.run_as('keystone', 'ls', '-l', '/proc/self/fd')
        self.assertNotIn(str(self.folder), done.stdout)
        done = self.run_as('keystone', 'cat', '/proc/self/status')
        status = dict(line.split(':\t', 1)
                      for line in done.stdout.splitlines() if ':\t' in line)
        for kind in ('CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb'):
            self.assertEqual(0, int(status[kind], 16), kind)
        self.assertEqual('1', status['NoNewPrivs'])

    def test_the_machines_mounts_stay_as_they_are(self):
        self.run_as('keystone', 'true')
        with open('/proc/self/mounts') as mounts:
            self.assertNotIn('clickos-lab', mounts.read())

    def test_one_account_does_not_read_what_is_anothers(self):
        path = accounts.home(self.state, 'nova') / 'file'
        path.write_text('x')
        os.chown(path, self.settings.ids['nova'], self.settings.ids['nova'])
        self.assertEqual(0, self.run_as('nova', 'cat', path).returncode)
        self.assertNotEqual(0, self.run_as('glance', 'cat', path).returncode)

    def test_a_folder_of_sockets_lets_one_group_in(self):
        folder = accounts.socket_folder(self.state, 'mariadb')
        self.assertEqual(0o710, stat.S_IMODE(folder.stat().st_mode))
        for account, status in (('nova', 0), ('front', 1)):
            done = self.run_as(account, 'test', '-x', folder)
            self.assertEqual(status, done.returncode, account)

# SPDX-License-Identifier: Apache-2.0
"""openstack clickos secret create | list | show | delete."""

import logging
import os
import tempfile

from osc_lib import exceptions

from clickos_osc.v1 import secret
from tests.unit.clickos_osc import base


class SecretTest(base.CommandTestCase):
    """A project's secrets."""

    def setUp(self):
        super().setUp()
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)

    def file(self, name, text):
        path = os.path.join(self.directory.name, name)
        with open(path, 'w') as file:
            file.write(text)
        return path

    def make(self, name, text='psk\n'):
        (_, row), _ = self.run_command(secret.CreateSecret, name,
                                       self.file(name, text))
        return row

    def test_a_life(self):
        made = self.make('vpn')
        self.assertEqual(('vpn', 'clickos-secret:' + made[0]), made[1:3])
        (_, rows), _ = self.run_command(secret.ListSecret)
        self.assertEqual([made], list(rows))
        for wanted in ('vpn', made[0]):
            (_, row), _ = self.run_command(secret.ShowSecret, wanted)
            self.assertEqual(made, row)
        self.run_command(secret.DeleteSecret, 'vpn')
        with self.assertRaisesRegex(exceptions.CommandError,
                                    'vpn: no such secret'):
            self.run_command(secret.ShowSecret, 'vpn')

    def test_a_line_end_is_no_part_of_the_value(self):
        made = self.make('rule', 'allow udp\n')
        self.assertEqual(200, self.put(made[2])[0])
        self.assertEqual('allow udp',
                         self.agent.guests[self.server_id]['fw.config'])

    def test_no_log_has_the_value(self):
        """`openstack --debug` shows each request, but not this one's."""
        with self.assertLogs(level='DEBUG') as logged:
            logging.getLogger(__name__).debug('there may be no other line')
            self.make('vpn', 'hidden\n')
        self.assertNotIn('hidden', '\n'.join(logged.output))

    def test_two_of_one_name(self):
        first = self.make('vpn')
        self.make('vpn')
        with self.assertRaisesRegex(exceptions.CommandError, 'use the id'):
            self.run_command(secret.DeleteSecret, 'vpn')
        self.run_command(secret.DeleteSecret, first[0])
        self.run_command(secret.ShowSecret, 'vpn')

    def test_a_refusal(self):
        with self.assertRaisesRegex(exceptions.CommandError,
                                    'HTTP 400, bad-request'):
            self.run_command(secret.CreateSecret, 'a b',
                             self.file('x', 'y'))

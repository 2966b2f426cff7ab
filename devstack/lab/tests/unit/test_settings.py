# SPDX-License-Identifier: Apache-2.0
"""Ports and passwords."""

import json
import pwd
import socket
import stat

from clickos_lab import errors
from clickos_lab import settings
from tests.unit import base


class SettingsTest(base.TestCase):

    def test_chosen_once_and_only_for_the_owner(self):
        first = settings.Settings.load(self.state)
        again = settings.Settings.load(self.state)
        self.assertEqual(first.ports, again.ports)
        self.assertEqual(first.passwords, again.passwords)
        mode = stat.S_IMODE(self.state.settings.stat().st_mode)
        self.assertEqual(0o600, mode)

    def test_all_different(self):
        chosen = settings.Settings.load(self.state)
        for values in (chosen.ports, chosen.passwords):
            self.assertEqual(len(values), len(set(values.values())))

    def test_an_occupied_port_is_named(self):
        chosen = settings.Settings.load(self.state)
        chosen.require_free_ports()
        with socket.socket() as s:
            s.bind(('127.0.0.1', chosen.ports['nova']))
            s.listen()
            with self.assertRaisesRegex(errors.LabError, r'\(nova\) is in'):
                chosen.require_free_ports()

    def test_an_older_lab_keeps_what_it_has(self):
        first = settings.Settings.load(self.state)
        values = json.loads(self.state.settings.read_text())
        del values['ids'], values['passwords']['rabbit_nova']
        self.state.settings.write_text(json.dumps(values))
        again = settings.Settings.load(self.state)
        self.assertEqual(first.ports, again.ports)
        self.assertEqual(first.passwords['nova'], again.passwords['nova'])
        self.assertEqual(set(first.ids), set(again.ids))
        third = settings.Settings.load(self.state)
        self.assertEqual(again.ids, third.ids)
        self.assertEqual(again.passwords, third.passwords)

    def test_no_id_is_shared_with_another_user_or_guest(self):
        chosen = settings.Settings.load(self.state)
        chosen.require_free_ids()
        numbers = list(chosen.ids.values())
        self.assertEqual(len(numbers), len(set(numbers)))
        guests = range(chosen.guest_uid, chosen.guest_uid + 0x8000)
        self.assertFalse(set(numbers) & set(guests))
        chosen.ids['nova'] = pwd.getpwnam('nobody').pw_uid
        with self.assertRaisesRegex(errors.LabError, r'65534 \(nova\)'):
            chosen.require_free_ids()

    def test_a_damaged_file_is_named(self):
        for text in ('', '{', '[]', '{"ports": {}}'):
            self.state.settings.write_text(text)
            with self.assertRaisesRegex(errors.LabError, 'damaged'):
                settings.Settings.load(self.state)

# SPDX-License-Identifier: Apache-2.0
"""The user_data document: overlay of writes and its limits."""

import base64
import json
import unittest

from clickos_client import document as client

from tacker_clickos.clickgen import document
from tacker_clickos import exception


class DocumentTest(unittest.TestCase):

    def test_newer_writes_replace_by_handler_in_their_order(self):
        self.assertEqual(
            [['a.x', '1'], ['c.z', '4'], ['b.y', '3']],
            client.overlay([['a.x', '1'], ['b.y', '2']],
                           [('c.z', '4'), ('b.y', '3')]))

    def test_user_data_is_base64_of_the_document(self):
        found = client.Configuration('Idle;', 'x', (('a.x', '1'),))
        self.assertEqual(
            {'clickos': 1, 'config_name': 'x', 'config': 'Idle;',
             'writes': [['a.x', '1']]},
            json.loads(base64.b64decode(document.user_data(found))))
        self.assertEqual(found, client.parse(document.user_data(found)))

    def test_too_long_for_nova(self):
        with self.assertRaisesRegex(
                exception.DocumentTooLong,
                'of x.click is 49[0-9]+ bytes long, the limit is 49152'):
            document.user_data(client.Configuration('x' * 49152, 'x.click'))

    def test_values_must_fit_into_desired_state(self):
        document.check_writes([['fw.config', 'x' * 524000]])
        with self.assertRaisesRegex(exception.DocumentTooLong,
                                    'the limit is 524288'):
            document.check_writes([['fw.config', 'x' * 524288]])

    def test_the_longest_writes_come_later(self):
        writes = (('a.x', '1'), ('b.y', 'x' * 20000), ('c.z', 'y' * 9000),
                  ('d.z', 'z' * 9000))
        first, later = document.split(
            client.Configuration('Idle;', 'x', writes))
        self.assertEqual((('a.x', '1'), ('d.z', 'z' * 9000)), first.writes)
        self.assertEqual([list(writes[1]), list(writes[2])], later)

    def test_a_secret_never_enters_user_data(self):
        reference = 'clickos-secret:' + '0' * 8 + '-0000' * 3 + '-' + '0' * 12
        first, later = document.split(client.Configuration(
            'Idle;', 'x', (('a.key', reference), ('b.y', '2'))))
        self.assertEqual((('b.y', '2'),), first.writes)
        self.assertEqual([['a.key', reference]], later)

# SPDX-License-Identifier: Apache-2.0
"""A guest's document: overlay of writes and its limits."""

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

    def test_values_must_fit_into_desired_state(self):
        document.check_writes([['fw.config', 'x' * 524000]])
        with self.assertRaisesRegex(exception.DocumentTooLong,
                                    'the limit is 524288'):
            document.check_writes([['fw.config', 'x' * 524288]])

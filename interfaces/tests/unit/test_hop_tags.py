# SPDX-License-Identifier: Apache-2.0
import unittest

from clickos_client import hop_tags


class HopTagsTest(unittest.TestCase):

    def test_what_is_made_is_read(self):
        for transparent in (True, False):
            for copies in (1, 2, hop_tags.MAX_COPIES):
                tags = hop_tags.make(transparent, copies)
                self.assertEqual(
                    (transparent, copies),
                    (hop_tags.transparent(tags), hop_tags.copies(tags)))
                self.assertTrue(all(map(hop_tags.is_ours, tags)))
        self.assertFalse(hop_tags.is_ours('mine'))

    def test_a_user_corrects_a_descriptor(self):
        self.assertIs(True, hop_tags.transparent(
            [hop_tags.ROUTED, hop_tags.TRANSPARENT]))

    def test_other_tags_say_nothing(self):
        for tags in ([], ['mine', 'clickos:']):
            self.assertIsNone(hop_tags.transparent(tags))
        for text in ('', '0', '17', '-1', '1e1', '1_0', 'x', '9' * 255,
                     '\u0662', '\u00b2'):
            self.assertEqual(1, hop_tags.copies([hop_tags.COPIES + text]),
                             text)

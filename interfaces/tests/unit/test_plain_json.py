# SPDX-License-Identifier: Apache-2.0
"""JSON that is nested too deep is refused by every Python."""

import json
import unittest

from clickos_client import plain_json


def nested(levels, opening='[', closing=']', inner='1'):
    return opening * levels + inner + closing * levels


class PlainJsonTest(unittest.TestCase):

    def test_the_depth_has_a_limit(self):
        limit = plain_json.MAX_DEPTH
        for opening, closing in (('[', ']'), ('{"a":', '}')):
            good = nested(limit, opening, closing)
            self.assertEqual(json.loads(good), plain_json.loads(good))
            for levels in (limit + 1, 900, 9000, 100000):
                for text in (nested(levels, opening, closing),
                             nested(levels, opening, closing).encode()):
                    with self.assertRaisesRegex(ValueError, 'deeper than 64'):
                        plain_json.loads(text)

    def test_an_empty_container_is_a_level(self):
        limit = plain_json.MAX_DEPTH
        plain_json.loads(nested(limit, inner=''))
        plain_json.loads('[' + '[[]],' * 1000 + '[]]')

    def test_brackets_in_texts_are_no_levels(self):
        text = json.dumps(['[' * 1000, {'{' * 1000: '"[\\'}])
        self.assertEqual(json.loads(text), plain_json.loads(text))

    def test_what_is_no_json_is_a_decode_error(self):
        for text in ('', '[1', '{"a":' * 50, b'nonsense'):
            with self.assertRaises(json.JSONDecodeError):
                plain_json.loads(text)

# SPDX-License-Identifier: Apache-2.0
"""No text costs the loader more than a fixed time."""

import pathlib
import re
import unittest
from unittest import mock

from clickos_client import bounded
from clickos_client import plain_yaml
from tests import hostile_yaml

_REPO = pathlib.Path(__file__).resolve().parents[3]
#: Seconds of processor time in which a text is refused or read.
_CPU_S = 2


def reading(content):
    """Return what the loader says; the process of the test calls it."""
    try:
        plain_yaml.load_alike(content)
    except plain_yaml.Refused as fault:
        return str(fault)
    return None


class HostileTest(unittest.TestCase):

    # Processor time is what counts here, not turns next to other tests.
    @mock.patch.object(bounded, '_NICE', 0)
    def test_every_text_within_its_processor_time(self):
        for name, (_text, expected) in hostile_yaml.TEXTS.items():
            with self.subTest(name):
                told = bounded.call_on_bytes(
                    f'{__name__}:reading', hostile_yaml.content(name),
                    bounded.Limits(cpu_s=_CPU_S, memory_bytes=1 << 28))
                if expected is None:
                    self.assertIsNone(told)
                else:
                    self.assertIn(expected, told or 'taken')


class LoaderTest(unittest.TestCase):

    def assertRefused(self, text, line, reason):
        with self.assertRaises(plain_yaml.Refused) as refused:
            plain_yaml.load(text)
        self.assertEqual(line, refused.exception.line)
        self.assertIn(reason, str(refused.exception))

    def test_plain_values(self):
        self.assertEqual(
            {'a': [1, -2, 0x1f, 0o17, 0b11, 1000, 1.5, True, None, 'x'],
             'b': {'c': '1:30', 'd': 'fe80::1', 'e': '02:00:00:00:00:01'},
             7: 'a number as a key'},
            plain_yaml.load(
                'a: [1, -2, 0x1f, 017, 0b11, 1_000, 1.5, yes, null, x]\n'
                'b: {c: "1:30", d: fe80::1, e: 02:00:00:00:00:01}\n'
                '7: a number as a key'))

    def test_a_number_as_a_key(self):
        for text in ('1' * plain_yaml.MAX_NUMBER_KEY, '-0x1f', '1.5'):
            plain_yaml.load(text + ': 1')
        for text in ('1' * 17, '0x' + '1' * 15, '1.' + '5' * 15):
            self.assertRefused('a:\n  %s: 1' % text, 2,
                               'the key %s is a number of more' % text)
            self.assertEqual({text: 1}, plain_yaml.load('"%s": 1' % text))

    def test_lines(self):
        self.assertRefused('a: 1\nb: 1:30', 2, '1:30 is a number in base 60')
        self.assertRefused('a: 1\n\na: 1', 3, 'the key a is in the map twice')

    def test_the_limits_themselves_pass(self):
        for text in ('1' * plain_yaml.MAX_NUMBER,
                     '[' * plain_yaml.MAX_DEPTH + ']' * plain_yaml.MAX_DEPTH,
                     '[' + 'a,' * (plain_yaml.MAX_NODES - 1) + ']',
                     '"%s"' % ('x' * (plain_yaml.MAX_BYTES - 2))):
            plain_yaml.load(text)

    def test_equal_keys_of_two_maps(self):
        self.assertEqual([{'a': 1}, {'a': {'a': 2}}],
                         plain_yaml.load('[{a: 1}, {a: {a: 2}}]'))

    def test_keys_may_repeat_where_blocks_are_one_document(self):
        self.assertEqual({'Name': 'b'}, plain_yaml.load_alike(
            'Name: a\n\nName: b', may_repeat=True))


class OneLoaderTest(unittest.TestCase):

    #: The modules that read what tenants wrote, by the library they use.
    USERS = {
        r'(import|from) yaml': {'interfaces/clickos_client/plain_yaml.py'},
        r'(import|from) (zipfile|tarfile|zlib|gzip|bz2|lzma)': {
            'tacker-plugin/tacker_clickos/package/archive.py',
            'interfaces/clickos_client/descriptor_reader.py',
            'interfaces/clickos_client/catalog.py',
            # It packs files of its own.
            'tacker-plugin/clickos_osc/v1/new_vnf.py'},
        r'(import|from) (tomllib|tomli|xml|pickle|marshal|shelve|csv)': {
            # It writes a picture.
            'interfaces/clickos_client/picture.py'},
    }

    def test_no_other_module_has_a_parser_of_tenants_text(self):
        paths = [path for part in ('interfaces/clickos_client',
                                   'tacker-plugin', 'nova-driver')
                 for path in sorted((_REPO / part).rglob('*.py'))
                 if 'tests' not in path.parts]
        self.assertGreater(len(paths), 200)
        for pattern, known in self.USERS.items():
            users = {str(path.relative_to(_REPO)) for path in paths
                     if re.search(rf'^\s*{pattern}\b', path.read_text(),
                                  re.MULTILINE)}
            self.assertEqual(known, users)

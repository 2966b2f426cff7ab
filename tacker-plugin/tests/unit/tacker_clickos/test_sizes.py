# SPDX-License-Identifier: Apache-2.0
"""Sizes as TOSCA writes them."""

import unittest

from tacker_clickos.vnfd import sizes


class SizesTest(unittest.TestCase):

    def test_units(self):
        for text, mib in (('8 MiB', 8), ('8 mib', 8), ('8MIB', 8),
                          ('8 MB', 8), ('64 MB', 62), ('1.5 GiB', 1536),
                          ('1 GB', 954), ('1048576 B', 1), ('1 B', 1),
                          ('1048577 b', 2), ('0.5 TiB', 524288),
                          ('1000 kB', 1), ('2048 KiB', 2)):
            self.assertEqual(mib, sizes.mib(text), text)

    def test_what_is_no_size(self):
        for text in ('', '8', 'MiB', '8 MiBit', '-8 MiB', '8,5 MiB', '1e3 MB',
                     '8 PiB', '\u0668 MiB', '8 MiB\n', '0 MiB',
                     '999999999999 TiB'):
            with self.assertRaisesRegex(ValueError, 'is not'):
                sizes.mib(text)

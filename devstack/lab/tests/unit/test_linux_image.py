# SPDX-License-Identifier: Apache-2.0
"""The kernel of a Linux guest for the cloud."""

import struct

from clickos_lab import errors
from clickos_lab.xen import linux_image
from tests.unit import base

_LOAD, _NOTE = 1, 4
#: Of two segments, 4 KiB apart; the second ends with zeros.
_TEXT, _DATA = b'text with a note', b'data' + bytes(5000)


def _elf(*headers):
    """Return an ELF file with program headers, a table of sections."""
    header = bytearray(64)
    header[:6] = b'\x7fELF\x02\x01'
    struct.pack_into('<QQ', header, 0x20, 64, 20000)
    struct.pack_into('<HHHHH', header, 0x36, 56, len(headers), 64, 9, 8)
    table = b''.join(struct.pack('<IIQQQQQQ', kind, 0, offset, 0, address,
                                 size, size, 1)
                     for kind, offset, address, size in headers)
    file = bytearray(20000 + 9 * 64)
    file[:64 + len(table)] = header + table
    file[4096:4096 + len(_TEXT)] = _TEXT
    file[8192:8192 + len(_DATA)] = _DATA
    return bytes(file)


def _segments(elf):
    """Return kind, address, sizes in file and memory, and content of each."""
    count, = struct.unpack_from('<H', elf, 0x38)
    for n in range(count):
        kind, _, offset, _, address, size, memory, _ = struct.unpack_from(
            '<IIQQQQQQ', elf, 64 + 56 * n)
        yield kind, address, size, memory, elf[offset:offset + size]


class SlimTest(base.TestCase):

    def test_a_kernel_keeps_what_its_loader_reads(self):
        slim = linux_image.slim(_elf(
            (_LOAD, 4096, 0x1000, len(_TEXT)),
            (_LOAD, 8192, 0x9000, len(_DATA)), (_NOTE, 4096 + 12, 0, 4)))
        self.assertEqual([
            (_LOAD, 0x1000, len(_TEXT), len(_TEXT), _TEXT),
            (_LOAD, 0x9000, 4, len(_DATA), b'data'),
            (_NOTE, 0, 4, 4, b'note')], list(_segments(slim)))
        self.assertLess(len(slim), 300)
        self.assertEqual((0, 0), struct.unpack_from('<HH', slim, 0x3c))

    def test_notes_outside_of_segments_are_named(self):
        with self.assertRaisesRegex(errors.LabError, '4 bytes at 15000'):
            linux_image.slim(_elf((_LOAD, 4096, 0, 16),
                                  (_NOTE, 15000, 0, 4)))

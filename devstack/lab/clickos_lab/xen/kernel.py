# SPDX-License-Identifier: Apache-2.0
"""The hypervisor and dom0's kernel, unpacked here: it is slow inside."""

import gzip
import lzma
import struct

from clickos_lab import errors
from clickos_lab.xen import packages

#: Offsets in the header of a bzImage (Linux, Documentation/x86/boot.rst).
_SETUP_SECTORS, _PAYLOAD_OFFSET, _PAYLOAD_LENGTH = 0x1f1, 0x248, 0x24c
_SECTOR = 512


def build(places):
    """Write the two ELF files QEMU starts."""
    xen = packages.find_one(places, 'boot/xen-*.gz')
    places.xen.write_bytes(gzip.decompress(xen.read_bytes()))
    image = packages.find_one(places, 'boot/vmlinuz-*')
    places.kernel.write_bytes(vmlinux(image.read_bytes()))


def vmlinux(image):
    """Return the ELF file inside of a bzImage.

    :raises LabError: if it is compressed with something else than XZ
    """
    setup = (image[_SETUP_SECTORS] or 4) + 1
    offset, = struct.unpack_from('<I', image, _PAYLOAD_OFFSET)
    length, = struct.unpack_from('<I', image, _PAYLOAD_LENGTH)
    begin = setup * _SECTOR + offset
    # After the compressed data come four bytes with the size: ignored here.
    try:
        elf = lzma.LZMADecompressor().decompress(image[begin:begin + length])
    except lzma.LZMAError as e:
        raise errors.LabError(f'kernel image: not compressed with XZ: {e}')
    if not elf.startswith(b'\x7fELF'):
        raise errors.LabError('kernel image: holds no ELF file')
    return elf

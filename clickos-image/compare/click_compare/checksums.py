# SPDX-License-Identifier: Apache-2.0
"""The Internet checksum."""
import struct


def checksum(data):
    """Return the Internet checksum of bytes."""
    data += b'\0' * (len(data) % 2)
    total = sum(struct.unpack(f'>{len(data) // 2}H', data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return 0xffff ^ total


def with_checksum(data, at, pseudo=b''):
    """Return bytes with their checksum, which is zero so far, at a place."""
    found = struct.pack('>H', checksum(pseudo + data))
    return data[:at] + found + data[at + 2:]

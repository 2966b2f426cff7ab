// SPDX-License-Identifier: Apache-2.0
//! The checksum of `SetCRC32` and `CheckCRC32`: the Ethernet polynomial, high bit first, not inverted,
//! stored with the low byte first as Click does on a little-endian machine.
use crc::{CRC_32_MPEG_2, Crc};

const CRC: Crc<u32> = Crc::<u32>::new(&CRC_32_MPEG_2);

/// Bytes of the checksum.
pub const SIZE: usize = 4;

/// The checksum as it stands behind `data`.
pub fn checksum(data: &[u8]) -> [u8; SIZE] {
    CRC.checksum(data).to_le_bytes()
}

// SPDX-License-Identifier: Apache-2.0
//! The checksum of `SetCRC32` and `CheckCRC32`: the Ethernet polynomial, high bit first, not inverted,
//! stored with the low byte first as Click does on a little-endian machine.
#[cfg(any(test, not(feature = "simd")))]
use crc::{CRC_32_MPEG_2, Crc};

/// Bytes of the checksum.
pub const SIZE: usize = 4;

/// The checksum as it stands behind `data`.
pub fn checksum(data: &[u8]) -> [u8; SIZE] {
    #[cfg(feature = "simd")]
    return folded(data).to_le_bytes();
    #[cfg(not(feature = "simd"))]
    return by_table(data).to_le_bytes();
}

#[cfg(any(test, not(feature = "simd")))]
fn by_table(data: &[u8]) -> u32 {
    const CRC: Crc<u32> = Crc::<u32>::new(&CRC_32_MPEG_2);
    CRC.checksum(data)
}

/// The same by carry-less multiplication, where the processor has it. The library takes the low bit of a byte first
/// and inverts the result, so bytes and result are mirrored.
#[cfg(feature = "simd")]
fn folded(data: &[u8]) -> u32 {
    const PIECE: usize = 256;
    let mut hasher = crc32fast::Hasher::new();
    let mut pieces = data.chunks_exact(PIECE);
    for piece in &mut pieces {
        let mirrored: [u8; PIECE] = core::array::from_fn(|n| piece[n].reverse_bits());
        hasher.update(&mirrored);
    }
    let mut mirrored = [0; PIECE];
    let rest = pieces.remainder();
    for (to, from) in mirrored.iter_mut().zip(rest) {
        *to = from.reverse_bits();
    }
    hasher.update(&mirrored[..rest.len()]);
    !hasher.finalize().reverse_bits()
}

#[cfg(all(test, feature = "simd"))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn folding_gives_what_the_table_gives(data in prop::collection::vec(any::<u8>(), 0..2000)) {
            prop_assert_eq!(folded(&data), by_table(&data));
        }
    }
}

// SPDX-License-Identifier: Apache-2.0
//! Asks the allocator for room before something is made: stable Rust ends the program when an
//! allocation fails.
use alloc::vec::Vec;
use core::hint::black_box;

#[cfg(feature = "threads")]
pub use crate::claims::{settle, share_among, undisturbed};

/// Bytes that packets and tables leave free for everything else.
pub const RESERVE: usize = 256 << 10;

/// Bytes of the smallest block that [`has_room`] asks for.
const SMALL: usize = 64 << 10;

/// True if the allocator has `bytes`. Free memory is fragmented, so the first block has half of
/// them, the next one half of the rest, and so on. The allocator gets all blocks back untouched.
///
/// With several threads, what others were promised in their slices is not free, and each has a reserve.
#[cold]
pub fn has_room(bytes: usize) -> bool {
    #[cfg(feature = "threads")]
    return crate::claims::ask(bytes, RESERVE, finds_room);
    #[cfg(not(feature = "threads"))]
    finds_room(bytes)
}

fn finds_room(bytes: usize) -> bool {
    let size = (bytes / 2).max(SMALL).min(bytes);
    let mut block = Vec::<u8>::new();
    let found = block.try_reserve_exact(size).is_ok();
    // Without this the compiler may remove the allocation, and take it for a success.
    black_box(&mut block);
    found && (size == bytes || finds_room(bytes - size))
}

/// The most bytes, up to `wanted`, that may be used twice with `reserve` left.
pub fn part_of(wanted: usize, reserve: usize) -> usize {
    let mut bytes = wanted;
    while bytes > 0 && !has_room(reserve.saturating_add(2 * bytes)) {
        bytes /= 2;
    }
    bytes
}

/// Lets a table grow entry by entry while [`RESERVE`] is left.
#[derive(Debug, Default)]
pub struct Growth {
    /// Entries until the next look; they come out of the reserve.
    left: u32,
}

impl Growth {
    const ENTRIES_PER_PROBE: u32 = 64;

    /// True if the memory takes one more entry of a few hundred bytes.
    pub fn takes_entry(&mut self) -> bool {
        if self.left == 0 {
            if !has_room(RESERVE) {
                return false;
            }
            self.left = Self::ENTRIES_PER_PROBE;
        }
        self.left -= 1;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_beyond_all_memory_is_not_there() {
        assert!(has_room(RESERVE));
        assert!(!has_room(usize::MAX));
    }
}

// SPDX-License-Identifier: Apache-2.0
//! Numbers that other guests cannot guess.
use crate::{clock, cpu};

/// A key: of the processor's random numbers if it has them, and of time.
pub fn seed() -> [u8; 32] {
    let mut key = [0; 32];
    for word in key.chunks_exact_mut(8) {
        let time = clock::system_ns() ^ clock::boot_ns().rotate_left(32) ^ cpu::counter();
        word.copy_from_slice(&(time ^ cpu::random().unwrap_or(0)).to_le_bytes());
    }
    key
}

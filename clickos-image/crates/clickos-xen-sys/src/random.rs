// SPDX-License-Identifier: Apache-2.0
//! Numbers that other guests cannot guess.
use crate::{clock, cpu};

/// A seed: of the processor's random numbers if it has them, and of time.
pub fn seed() -> u64 {
    let time = clock::system_ns() ^ clock::boot_ns().rotate_left(32) ^ cpu::counter();
    time ^ cpu::random().unwrap_or(0)
}

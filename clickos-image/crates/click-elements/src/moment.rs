// SPDX-License-Identifier: Apache-2.0
//! The surroundings of a protocol that runs without the router: time and random bytes.

/// Nanoseconds of a second.
pub const SECOND_NS: u64 = 1_000_000_000;

/// Time and random bytes of a call.
pub struct Moment<'d> {
    /// Nanoseconds since 1970.
    pub now_ns: u64,
    /// Makes random bytes.
    pub draw: &'d mut dyn FnMut() -> [u8; 32],
}

impl Moment<'_> {
    /// A random number of 64 bits.
    pub fn number(&mut self) -> u64 {
        let [a, b, c, d, e, f, g, h, ..] = (self.draw)();
        u64::from_be_bytes([a, b, c, d, e, f, g, h])
    }

    /// A random number that is not 0.
    pub fn magic(&mut self) -> u32 {
        let [a, b, c, d, ..] = (self.draw)();
        u32::from_be_bytes([a, b, c, d]).max(1)
    }
}

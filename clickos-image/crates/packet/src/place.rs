// SPDX-License-Identifier: Apache-2.0
//! Where a packet's data lies in its buffer, in eight bytes that travel with the pointer to it: stripping, cutting and
//! handing on touch no memory of the packet itself.

/// Bits of an offset; no buffer is longer.
const BITS: u32 = 18;
const OFFSET: u32 = (1 << BITS) - 1;
/// What was stripped is remembered up to this many bytes.
const MOST_STRIPPED: u32 = u32::MAX >> BITS;

/// The network header is known.
pub const NETWORK: u64 = 1 << 56;
/// What the header of a buffer tells; the rest of it is left over from an earlier packet.
pub const MAC: u64 = 1 << 57;
pub const ANNOTATIONS: u64 = 1 << 58;
/// Other packets may have the same buffer.
pub const SHARED: u64 = 1 << 59;
/// Where the length begins.
const LEN: u32 = 32;

/// From the lowest bit on: where the data begins, how many bytes before it were stripped, its length, the flags. One
/// number, so that a packet is two and moves in registers.
#[derive(Clone, Copy)]
pub struct Place(u64);

impl Place {
    /// `len` bytes from `start` on; both fit a buffer.
    #[inline]
    pub fn new(start: usize, len: usize) -> Self {
        debug_assert!(start + len <= OFFSET as usize);
        Self(start as u64 | (len as u64) << LEN)
    }

    #[inline]
    pub fn start(self) -> u32 {
        self.0 as u32 & OFFSET
    }

    #[inline]
    pub fn len(self) -> u32 {
        (self.0 >> LEN) as u32 & OFFSET
    }

    #[inline]
    pub fn end(self) -> u32 {
        self.start() + self.len()
    }

    #[inline]
    fn stripped(self) -> u32 {
        self.0 as u32 >> BITS
    }

    /// Where the first byte lies that is the packet's: headers that were stripped, or its data.
    #[inline]
    pub fn first(self) -> u32 {
        self.start().saturating_sub(self.stripped())
    }

    #[inline]
    fn set_start(&mut self, start: u32, stripped: u32) {
        let low = start | stripped.min(MOST_STRIPPED) << BITS;
        self.0 = self.0 >> LEN << LEN | u64::from(low);
    }

    /// The first `n` bytes, of those there are, become stripped ones.
    #[inline]
    pub fn pull(&mut self, n: usize) {
        let n = u32::try_from(n).map_or(self.len(), |n| n.min(self.len()));
        self.take(n);
        self.set_start(self.start() + n, self.stripped() + n);
    }

    /// The data begins `n` bytes earlier; there are so many.
    #[inline]
    pub fn push(&mut self, n: u32) {
        self.put(n);
        self.set_start(self.start() - n, self.stripped().saturating_sub(n));
    }

    /// The data ends `n` bytes earlier; there are so many.
    #[inline]
    pub fn take(&mut self, n: u32) {
        self.0 -= u64::from(n) << LEN;
    }

    /// The data ends `n` bytes later; there are so many.
    #[inline]
    pub fn put(&mut self, n: u32) {
        self.0 += u64::from(n) << LEN;
    }

    /// Everything lies `by` bytes further back.
    #[inline]
    pub fn shift(&mut self, by: u32) {
        self.set_start(self.start() + by, self.stripped());
    }

    #[inline]
    pub fn has(self, flag: u64) -> bool {
        self.0 & flag != 0
    }

    #[inline]
    pub fn set(&mut self, flag: u64) {
        self.0 |= flag;
    }

    #[inline]
    pub fn clear(&mut self, flag: u64) {
        self.0 &= !flag;
    }
}

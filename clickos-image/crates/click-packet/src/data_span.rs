// SPDX-License-Identifier: Apache-2.0
//! The span of a packet's data in its buffer, in eight bytes that travel with the pointer to it: stripping, cutting and
//! handing on touch no memory of the packet itself.

/// Bits of an offset; no buffer is longer.
const BITS: u32 = 18;
const OFFSET: u32 = (1 << BITS) - 1;
/// The span remembers stripped bytes up to this number.
const MAX_STRIPPED: u32 = u32::MAX >> BITS;

/// The network header is known.
pub const NETWORK: u64 = 1 << 50;
/// The header of the buffer tells annotations; otherwise they are left over from an earlier packet.
pub const ANNOTATIONS: u64 = 1 << 51;
/// Other packets may have the same buffer.
pub const SHARED: u64 = 1 << 52;
/// Where the link header is kept, in the other bits: 0 is unknown,
const MAC: u32 = 53;
/// this one far away, so that the header of the buffer tells it, and any other one more than its offset.
const FAR: u32 = u32::MAX >> (MAC - 32);
/// Where the length begins.
const LEN: u32 = 32;
/// What a byte that is stripped adds: one to the start, one to what was stripped, one less to the length.
const PULLED: u64 = 1u64.wrapping_add(1 << BITS).wrapping_sub(1 << LEN);

/// From the lowest bit on: where the data begins, how many bytes before it were stripped, its length, the flags, the
/// link header.
#[derive(Clone, Copy)]
pub struct DataSpan(u64);

impl DataSpan {
    /// No bit is set.
    pub const NONE: Self = Self(0);

    /// The bits set in either one.
    #[inline]
    pub fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

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
        let low = start | stripped.min(MAX_STRIPPED) << BITS;
        self.0 = self.0 >> LEN << LEN | u64::from(low);
    }

    /// The first `n` bytes, of those there are, become stripped ones.
    #[inline]
    pub fn pull(&mut self, n: usize) {
        let n = u32::try_from(n).map_or(self.len(), |n| n.min(self.len()));
        if n <= MAX_STRIPPED - self.stripped() {
            // all three parts at once: none of them leaves its bits
            self.0 = self.0.wrapping_add(u64::from(n).wrapping_mul(PULLED));
            return;
        }
        self.take(n);
        self.set_start(self.start() + n, MAX_STRIPPED);
    }

    /// The data begins `n` bytes earlier; that many exist.
    #[inline]
    pub fn push(&mut self, n: u32) {
        if n <= self.stripped() {
            self.0 = self.0.wrapping_sub(u64::from(n).wrapping_mul(PULLED));
            return;
        }
        self.put(n);
        self.set_start(self.start() - n, 0);
    }

    /// The data ends `n` bytes earlier; that many exist.
    #[inline]
    pub fn take(&mut self, n: u32) {
        self.0 -= u64::from(n) << LEN;
    }

    /// The data ends `n` bytes later; that many exist.
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

    /// The offset of the link header if it is known, or `far()` if it is far away.
    #[inline]
    pub fn mac(self, far: impl FnOnce() -> u32) -> Option<u32> {
        match (self.0 >> MAC) as u32 {
            FAR => Some(far()),
            at => at.checked_sub(1),
        }
    }

    /// True if the link header is far away.
    #[inline]
    pub fn has_far_mac(self) -> bool {
        self.0 >> MAC == u64::from(FAR)
    }

    /// Sets the offset of the link header; returns whether it is far away.
    #[inline]
    pub fn set_mac(&mut self, at: Option<u32>) -> bool {
        let is_far = at.is_some_and(|at| at >= FAR - 1);
        let told = if is_far {
            FAR
        } else {
            at.map_or(0, |at| at + 1)
        };
        self.0 = self.0 & ((1 << MAC) - 1) | u64::from(told) << MAC;
        is_far
    }
}

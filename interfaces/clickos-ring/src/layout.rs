// SPDX-License-Identifier: Apache-2.0
//! Where things are in a port's region (docs/rings.md), in bytes from its start.
use core::ops::RangeInclusive;

use crate::RingError;

/// `VALERING`, little-endian.
pub const MAGIC: u64 = u64::from_le_bytes(*b"VALERING");
pub const VERSION: u32 = 1;
/// Bytes of one packet buffer; a buffer never crosses a page.
pub const BUFFER_SIZE: usize = 2048;
/// Slots of one ring; a power of two.
pub const SLOTS_RANGE: RangeInclusive<u32> = 64..=2048;
/// Unit in which a Xen guest grants the region.
pub const PAGE: usize = 4096;

pub(crate) const AT_MAGIC: usize = 0x00;
pub(crate) const AT_VERSION: usize = 0x08;
pub(crate) const AT_SLOTS: usize = 0x0c;
pub(crate) const AT_BUFFER_SIZE: usize = 0x10;

/// Lines are two cache lines apart because processors prefetch them in pairs.
const LINE_STRIDE: usize = 128;
const LINES: usize = 0x100;

/// Words of a line, in bytes from its start.
pub(crate) const INDEX: usize = 0;
pub(crate) const CUR: usize = 4;
pub(crate) const NEED_KICK: usize = 8;

/// A direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ring {
    /// Guest to switch.
    Tx = 0,
    /// Switch to guest.
    Rx = 1,
}

impl Ring {
    /// The words the guest writes: `head`, `cur`, `need_kick`.
    pub const fn guest_line(self) -> usize {
        LINES + self as usize * 2 * LINE_STRIDE
    }

    /// The words the switch writes: `tail`, `cur`, `need_kick`.
    pub const fn switch_line(self) -> usize {
        self.guest_line() + LINE_STRIDE
    }
}

/// Sizes that follow from the number of slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    slots: u32,
}

impl Layout {
    pub fn new(slots: u32) -> Result<Self, RingError> {
        if slots.is_power_of_two() && SLOTS_RANGE.contains(&slots) {
            Ok(Self { slots })
        } else {
            Err(RingError::Slots(slots))
        }
    }

    pub fn slots(self) -> u32 {
        self.slots
    }

    /// Bytes of the whole region, a multiple of [`PAGE`].
    pub fn size(self) -> usize {
        self.buffers(Ring::Rx) + self.slots as usize * BUFFER_SIZE
    }

    /// Start of the slot descriptors of `ring`, page aligned.
    pub(crate) fn descriptors(self, ring: Ring) -> usize {
        PAGE + ring as usize * self.descriptor_area()
    }

    /// Start of the buffers that `ring` begins with, page aligned.
    pub(crate) fn buffers(self, ring: Ring) -> usize {
        PAGE + 2 * self.descriptor_area() + ring as usize * self.slots as usize * BUFFER_SIZE
    }

    fn descriptor_area(self) -> usize {
        (self.slots as usize * 8).next_multiple_of(PAGE)
    }
}

/// A slot's descriptor: where a frame is and how long. One 64-bit word:
/// bits 0..32 offset in the region, 32..48 length, 48..64 flags (none defined: 0).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Descriptor {
    pub offset: u32,
    pub len: u16,
}

impl Descriptor {
    pub fn to_word(self) -> u64 {
        u64::from(self.offset) | u64::from(self.len) << 32
    }

    /// The descriptor in `word`, if it lies in one buffer of the region and has no flags.
    pub fn from_word(word: u64, layout: Layout) -> Option<Self> {
        let this = Self {
            offset: word as u32,
            len: (word >> 32) as u16,
        };
        let (offset, len) = (this.offset as usize, usize::from(this.len));
        let in_buffers = (layout.buffers(Ring::Tx)..layout.size()).contains(&offset);
        let in_one = offset % BUFFER_SIZE + len <= BUFFER_SIZE;
        (in_buffers && in_one && word >> 48 == 0).then_some(this)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_aligned_and_nothing_overlaps() {
        for slots in [64, 128, 256, 512, 1024, 2048] {
            let layout = Layout::new(slots).unwrap();
            let n = slots as usize;
            let (tx, rx) = (layout.descriptors(Ring::Tx), layout.descriptors(Ring::Rx));
            assert!(Ring::Rx.switch_line() + LINE_STRIDE <= tx && tx + n * 8 <= rx);
            let (tx_buffers, rx_buffers) = (layout.buffers(Ring::Tx), layout.buffers(Ring::Rx));
            assert!(rx + n * 8 <= tx_buffers);
            assert_eq!(tx_buffers + n * BUFFER_SIZE, rx_buffers);
            assert_eq!(rx_buffers + n * BUFFER_SIZE, layout.size());
            for at in [tx, rx, tx_buffers, rx_buffers, layout.size()] {
                assert_eq!(at % PAGE, 0);
            }
        }
        for bad in [0, 1, 32, 65, 4096, u32::MAX] {
            assert_eq!(Layout::new(bad), Err(RingError::Slots(bad)));
        }
    }

    #[test]
    fn a_descriptor_stays_in_one_buffer() {
        let layout = Layout::new(64).unwrap();
        let first = layout.buffers(Ring::Tx) as u64;
        let word = |offset: u64, len: u64, flags: u64| offset | len << 32 | flags << 48;
        for (good, w) in [
            (true, word(first, 2048, 0)),
            (true, word(first + 100, 1948, 0)),
            (false, word(first + 100, 1949, 0)),
            (false, word(first, 2049, 0)),
            (false, word(first, 60, 1)),
            (false, word(first - 1, 1, 0)),
            (false, word(0, 8, 0)),
            (true, word(layout.size() as u64 - 2048, 2048, 0)),
            (false, word(layout.size() as u64, 0, 0)),
            (false, u64::MAX),
        ] {
            let parsed = Descriptor::from_word(w, layout);
            assert_eq!(parsed.is_some(), good, "{w:#x}");
            assert!(parsed.is_none_or(|d| d.to_word() == w));
        }
    }
}

// SPDX-License-Identifier: Apache-2.0
//! Where things are in a port's region (docs/rings.md), in bytes from its start.
use core::ops::RangeInclusive;

use crate::RingError;

/// `VALERING`, little-endian.
pub const MAGIC: u64 = u64::from_le_bytes(*b"VALERING");
/// The highest version.
pub const MAX_VERSION: u32 = 2;
/// Bytes of a chunk of version 2, which holds whole buffers.
pub const CHUNK: usize = 7 * PAGE;
/// Buffers of a chunk.
pub const PER_CHUNK: usize = 12;
/// Bytes from one buffer to the next.
pub const STRIDE: usize = 2368;
/// Bytes before the frame in a buffer that rx offers at first.
pub const BEFORE_FRAME: usize = 192;
/// Different cache lines at which chunks begin their buffers.
const COLORS: usize = 5;
/// Bytes of the buffer that each slot of tx has for a short frame in version 2.
pub const SHORT: usize = 256;
/// Bytes of one packet buffer; a buffer never crosses a page.
pub const BUFFER_SIZE: usize = 2048;
/// Largest MTU whose frames lie in one buffer, with Ethernet header and VLAN tags.
pub const SHORT_MTU: usize = 1900;
/// Slots of one ring; a power of two.
pub const SLOTS_RANGE: RangeInclusive<u32> = 64..=2048;
/// Unit in which a Xen guest grants the region.
pub const PAGE: usize = 4096;

pub(crate) const AT_MAGIC: usize = 0x00;
pub(crate) const AT_VERSION: usize = 0x08;
pub(crate) const AT_SLOTS: usize = 0x0c;
pub(crate) const AT_BUFFER_SIZE: usize = 0x10;
pub(crate) const AT_REGION: usize = 0x14;
/// Features: of the guest, and those of them that the switch accepts.
pub(crate) const AT_OFFERED: usize = 0x18;
pub(crate) const AT_ACCEPTED: usize = 0x1c;

/// The feature of version 1 by which both sides may leave checksums to the other.
pub const CHECKSUMS: u32 = 1;
/// The feature of version 1, besides [`CHECKSUMS`], by which both sides may leave segmentation to
/// the other. The slots' buffers are their own then, also in rx.
pub const SEGMENTS: u32 = 2;
/// The feature of version 1 by which frames of up to [`LONGEST`] bytes take several slots. The slots'
/// buffers are their own then, also in rx.
pub const LONG: u32 = 4;
/// All features.
#[cfg(feature = "std")]
pub(crate) const FEATURES: u32 = CHECKSUMS | SEGMENTS | LONG;
/// The flag of such a frame: its TCP or UDP checksum covers the pseudo header only.
pub(crate) const NEEDS_CSUM: u16 = 1;
/// Least bytes of payload of a segment: a frame becomes 256 segments at most.
pub const MIN_SEGMENT: u16 = 256;
/// Most bytes of payload of a segment.
pub const MAX_SEGMENT: u16 = 2047;
/// The same with [`LONG`].
pub const MAX_LONG_SEGMENT: u16 = 9000;
/// Most slots of a frame that is not to be segmented, with [`LONG`].
const LONG_SLOTS: usize = 5;
/// Bytes of the longest such frame: the MTU may be 9,000 bytes.
pub const LONGEST: usize = LONG_SLOTS * BUFFER_SIZE;

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
    version: u32,
}

impl Layout {
    /// The layout of version 1.
    pub fn new(slots: u32) -> Result<Self, RingError> {
        Self::of(1, slots)
    }

    /// The layout of a version.
    pub fn of(version: u32, slots: u32) -> Result<Self, RingError> {
        if !(1..=MAX_VERSION).contains(&version) {
            return Err(RingError::BadVersion(version));
        }
        if slots.is_power_of_two() && SLOTS_RANGE.contains(&slots) {
            Ok(Self { slots, version })
        } else {
            Err(RingError::Slots(slots))
        }
    }

    pub fn version(self) -> u32 {
        self.version
    }

    /// True if the guest's buffers are its packets.
    pub(crate) fn is_in_place(self) -> bool {
        self.version > 1
    }

    pub fn slots(self) -> u32 {
        self.slots
    }

    /// Bytes of the whole region, a multiple of [`PAGE`].
    pub fn size(self) -> usize {
        match self.is_in_place() {
            true => self.first_chunk() + self.chunks() * CHUNK,
            false => self.buffers(Ring::Rx) + self.slots as usize * BUFFER_SIZE,
        }
    }

    /// Bytes before the buffers.
    fn area(self) -> usize {
        PAGE + 2 * self.descriptor_area()
    }

    /// Where the chunks of version 2 begin, behind the buffers for short frames.
    pub fn first_chunk(self) -> usize {
        self.area() + self.slots as usize * SHORT
    }

    /// Chunks of version 2: with a buffer for each slot of rx, and as many to spare.
    pub fn chunks(self) -> usize {
        (2 * self.slots as usize).div_ceil(PER_CHUNK)
    }

    /// Bytes from the start of a chunk to its first buffer.
    pub fn color(chunk: usize) -> usize {
        chunk % COLORS * 64
    }

    /// The offset of the frame in buffer `n` of the chunks.
    pub fn frame(self, n: usize) -> usize {
        let (chunk, place) = (n / PER_CHUNK, n % PER_CHUNK);
        self.first_chunk() + chunk * CHUNK + Self::color(chunk) + place * STRIDE + BEFORE_FRAME
    }

    /// Start of the slot descriptors of `ring`, page aligned.
    pub(crate) fn descriptors(self, ring: Ring) -> usize {
        PAGE + ring as usize * self.descriptor_area()
    }

    /// Start of the buffers that `ring` begins with, page aligned.
    fn buffers(self, ring: Ring) -> usize {
        self.area() + ring as usize * self.slots as usize * BUFFER_SIZE
    }

    /// The offset of a slot's own buffer: for the guest in tx; in rx the one that it offers at first.
    pub(crate) fn own_buffer(self, ring: Ring, slot: u32) -> usize {
        let slot = slot as usize;
        match (self.is_in_place(), ring) {
            (false, _) => self.buffers(ring) + slot * BUFFER_SIZE,
            (true, Ring::Tx) => self.area() + slot * SHORT,
            (true, Ring::Rx) => self.frame(slot),
        }
    }

    /// Slots whose buffers a frame takes that begins in the first of them.
    pub(crate) fn slots_for(len: usize) -> u32 {
        len.div_ceil(BUFFER_SIZE) as u32
    }

    /// True if an rx slot may offer this offset.
    pub(crate) fn has_room_at(self, offset: u32) -> bool {
        self.extent().has_room_at(offset)
    }

    /// The buffers, to check many descriptors.
    pub(crate) fn extent(self) -> Extent {
        Extent {
            first: self.area(),
            size: self.size() - self.area(),
            limit: match self.is_in_place() {
                true => usize::MAX,
                false => BUFFER_SIZE + 1,
            },
        }
    }

    fn descriptor_area(self) -> usize {
        (self.slots as usize * 8).next_multiple_of(PAGE)
    }
}

/// A slot's descriptor: where a frame is and how long. One 64-bit word:
/// bits 0..32 offset in the region, 32..48 length, 48..64 number of the region (0: the ring's own).
/// In version 1 the last are flags: bit 48 is [`NEEDS_CSUM`], bits 49..63 are the size of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Descriptor {
    pub offset: u32,
    pub len: u16,
    pub region: u16,
}

impl Descriptor {
    pub fn to_word(self) -> u64 {
        u64::from(self.offset) | u64::from(self.len) << 32 | u64::from(self.region) << 48
    }

    pub fn parse(word: u64) -> Self {
        Self {
            offset: word as u32,
            len: (word >> 32) as u16,
            region: (word >> 48) as u16,
        }
    }

    /// True if its flags are those of features that both sides have.
    #[cfg(feature = "std")]
    pub fn is_agreed(self, features: u32) -> bool {
        let needs_csum = self.region & NEEDS_CSUM != 0 && features & CHECKSUMS != 0;
        match segment(self.region) {
            0 => needs_csum || self.region == 0,
            MIN_SEGMENT.. if segment(self.region) <= most_segment(features) => {
                needs_csum && features & SEGMENTS != 0
            }
            _ => false,
        }
    }

    /// True if it lies where a frame with its flags may.
    #[cfg(feature = "std")]
    #[inline]
    pub fn lies_as_agreed(self, layout: Layout, features: u32) -> bool {
        if features & (SEGMENTS | LONG) == 0 {
            return self.lies_in(layout);
        }
        let is_long = usize::from(self.len) > BUFFER_SIZE && features & LONG != 0;
        match segment(self.region) != 0 || (is_long && usize::from(self.len) <= LONGEST) {
            true => self.lies_anywhere_in(layout),
            false => self.lies_in(layout),
        }
    }

    /// True if it lies in the buffers, whatever their borders are.
    pub fn lies_anywhere_in(self, layout: Layout) -> bool {
        layout.extent().contains(self)
    }

    /// True if it lies in the buffers of a region with this layout: in one buffer in version 1.
    pub fn lies_in(self, layout: Layout) -> bool {
        layout.extent().holds(self)
    }
}

/// The buffers of a region.
#[derive(Clone, Copy)]
pub(crate) struct Extent {
    first: usize,
    /// Their bytes.
    size: usize,
    /// A frame of one slot ends before this offset from the start of the buffer that it begins in.
    limit: usize,
}

impl Extent {
    fn contains(self, frame: Descriptor) -> bool {
        let (at, len) = (self.place(frame), usize::from(frame.len));
        at < self.size && len <= self.size - at
    }

    /// The frame's place in the buffers, or a large number.
    fn place(self, frame: Descriptor) -> usize {
        (frame.offset as usize).wrapping_sub(self.first)
    }

    /// See [`Descriptor::lies_in`].
    #[inline]
    pub fn holds(self, frame: Descriptor) -> bool {
        let end = frame.offset as usize % BUFFER_SIZE + usize::from(frame.len);
        self.contains(frame) && end < self.limit
    }

    /// See [`Layout::has_room_at`].
    #[inline]
    pub fn has_room_at(self, offset: u32) -> bool {
        self.holds(Descriptor {
            offset,
            len: BUFFER_SIZE as u16,
            region: 0,
        })
    }
}

/// The flags of version 1 for a frame whose checksum is left, and segmentation unless it is 0.
#[cfg(feature = "std")]
pub(crate) fn flags(segment: u16) -> u16 {
    NEEDS_CSUM | segment << 1
}

/// Most bytes of payload of a segment with these features.
#[cfg(feature = "std")]
pub(crate) fn most_segment(features: u32) -> u16 {
    match features & LONG != 0 {
        true => MAX_LONG_SEGMENT,
        false => MAX_SEGMENT,
    }
}

/// Payload bytes of the segments that a frame with these flags is to be cut into; 0 for none.
pub(crate) fn segment(flags: u16) -> u16 {
    flags >> 1
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
    fn buffers_of_version_2_fill_their_chunks_and_nothing_else() {
        for slots in [64, 256, 2048] {
            let layout = Layout::of(2, slots).unwrap();
            assert_eq!(layout.first_chunk() % PAGE, 0);
            let count = layout.chunks() * PER_CHUNK;
            assert!(count >= 2 * slots as usize);
            for n in 0..count {
                let chunk = (layout.frame(n) - layout.first_chunk()) / CHUNK;
                let end = layout.frame(n) - BEFORE_FRAME + STRIDE;
                assert!(end <= layout.first_chunk() + (chunk + 1) * CHUNK);
                assert!(n == 0 || layout.frame(n) >= layout.frame(n - 1) + STRIDE);
            }
            assert!(layout.frame(count - 1) + BUFFER_SIZE <= layout.size());
            let last = layout.own_buffer(Ring::Tx, slots - 1);
            assert_eq!(last + SHORT, layout.first_chunk());
        }
        assert_eq!(Layout::of(3, 64), Err(RingError::BadVersion(3)));
    }

    #[test]
    fn a_descriptor_of_version_2_stays_in_the_buffers() {
        let layout = Layout::of(2, 64).unwrap();
        let (first, end) = (layout.area() as u64, layout.size() as u64);
        let word = |offset: u64, len: u64, region: u64| offset | len << 32 | region << 48;
        for (good, w) in [
            (true, word(first, 2048, 0)),
            (true, word(first + 2000, 2048, 0)),
            (false, word(first - 1, 60, 0)),
            (true, word(end - 60, 60, 0)),
            (false, word(end - 60, 61, 0)),
            (false, word(end, 0, 0)),
        ] {
            assert_eq!(Descriptor::parse(w).lies_in(layout), good, "{w:#x}");
        }
        let word = word(first, 60, 7);
        assert!(Descriptor::parse(word).lies_in(layout));
        assert_eq!(Descriptor::parse(word).to_word(), word);
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
            (false, word(first - 1, 1, 0)),
            (false, word(0, 8, 0)),
            (true, word(layout.size() as u64 - 2048, 2048, 0)),
            (false, word(layout.size() as u64, 0, 0)),
            (false, u64::MAX),
        ] {
            let parsed = Descriptor::parse(w);
            assert_eq!(parsed.lies_in(layout), good, "{w:#x}");
            assert_eq!(parsed.to_word(), w);
        }
    }
}

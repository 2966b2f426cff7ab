// SPDX-License-Identifier: Apache-2.0
//! A packet: a buffer with headroom, header offsets and annotations. Copies share the buffer until one is changed.
use core::ptr::NonNull;
use core::slice;

use crate::anno::DST_IP_SIZE;
use crate::arena::{self, Arena, ArenaRef};
use crate::buffer::{DATA_OFFSET, Header, capacity, copy_lines, extra_refs};
use crate::copy::copy;
use crate::data_span::{ANNOTATIONS, DataSpan, SHARED};
use crate::metadata::HeaderOffsets;

/// Bytes kept free before the data of a fresh packet, for encapsulation.
pub const HEADROOM: usize = 128;
/// The longest packet the engine carries.
pub const MAX_PACKET: usize = 65_535 + 64;

/// An offset or length that fits a buffer.
#[inline]
fn offset(n: usize) -> u32 {
    u32::try_from(n).expect("no buffer is longer than 2 * MAX_PACKET")
}

/// One packet. Dropping it gives its buffer back to the pool it came from.
///
/// What most elements ask for lies here, so that batches and queues, which are dense, bring it. Header offsets count
/// from the start of the buffer, so stripping and encapsulating do not move them.
pub struct Packet {
    pub(crate) header: NonNull<Header>,
    /// Invariant: it ends within the buffer.
    pub(crate) span: DataSpan,
    pub(crate) timestamp_ns: u64,
    pub(crate) headers: HeaderOffsets,
    pub(crate) dst_ip: [u8; DST_IP_SIZE],
}

impl Packet {
    /// A packet of `len` bytes after `headroom` bytes.
    ///
    /// # Safety
    /// `header` was just taken from its arena, and `headroom + len` is at most its capacity.
    #[inline]
    pub(crate) unsafe fn fresh(header: NonNull<Header>, headroom: usize, len: usize) -> Self {
        Self {
            header,
            span: DataSpan::new(headroom, len),
            timestamp_ns: 0,
            headers: HeaderOffsets::NONE,
            dst_ip: [0; DST_IP_SIZE],
        }
    }

    #[inline]
    pub(crate) fn h(&self) -> &Header {
        // SAFETY: a buffer lives as long as a packet has it, and who changes it has it alone.
        unsafe { self.header.as_ref() }
    }

    #[inline]
    pub(crate) fn h_mut(&mut self) -> &mut Header {
        self.uniqueify();
        // SAFETY: no other packet has this buffer, and `&mut self` is the only way there.
        unsafe { self.header.as_mut() }
    }

    /// The buffer's bytes between two offsets.
    ///
    /// # Safety
    /// `from <= to`, and `to` is at most the buffer's capacity.
    #[inline]
    pub(crate) unsafe fn bytes(&self, from: u32, to: u32) -> &[u8] {
        // SAFETY: `capacity` initialized bytes begin there; the header's references do not reach them.
        unsafe {
            let at = self.header.cast::<u8>().add(DATA_OFFSET + from as usize);
            slice::from_raw_parts(at.as_ptr(), (to - from) as usize)
        }
    }

    /// Like `bytes`; other packets do not see what is changed.
    ///
    /// # Safety
    /// As `bytes`.
    #[inline]
    pub(crate) unsafe fn bytes_mut(&mut self, from: u32, to: u32) -> &mut [u8] {
        self.uniqueify();
        // SAFETY: as in `bytes`, no other packet has the buffer, and `&mut self` is the only way there.
        unsafe {
            let at = self.header.cast::<u8>().add(DATA_OFFSET + from as usize);
            slice::from_raw_parts_mut(at.as_ptr(), (to - from) as usize)
        }
    }

    /// The packet's bytes.
    #[inline]
    pub fn data(&self) -> &[u8] {
        // SAFETY: start <= end <= capacity.
        unsafe { self.bytes(self.span.start(), self.span.end()) }
    }

    /// The packet's bytes, to change in place.
    #[inline]
    pub fn data_mut(&mut self) -> &mut [u8] {
        // SAFETY: start <= end <= capacity.
        unsafe { self.bytes_mut(self.span.start(), self.span.end()) }
    }

    /// Number of bytes of data.
    #[inline]
    pub fn len(&self) -> usize {
        self.span.len() as usize
    }

    /// True if the packet has no data.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes free before the data.
    #[inline]
    pub fn headroom(&self) -> usize {
        self.span.start() as usize
    }

    /// Bytes free after the data.
    #[inline]
    pub fn tailroom(&self) -> usize {
        (capacity(self.header) - self.span.end()) as usize
    }

    /// Removes `n` bytes (at most all) from the front.
    #[inline]
    pub fn pull(&mut self, n: usize) {
        self.span.pull(n);
    }

    /// Removes `n` bytes (at most all) from the end.
    #[inline]
    pub fn take(&mut self, n: usize) {
        self.span.take(offset(n.min(self.len())));
    }

    /// Adds `n` bytes of unspecified content in front; false if the packet would become too long.
    #[inline]
    #[must_use]
    pub fn push(&mut self, n: usize) -> bool {
        if self.headroom() < n && !self.grow(n - self.headroom() + HEADROOM, 0) {
            return false;
        }
        self.uniqueify();
        self.span.push(offset(n));
        true
    }

    /// Adds a header in front; false if the packet would become too long.
    #[inline]
    #[must_use]
    pub fn prepend<const N: usize>(&mut self, header: &[u8; N]) -> bool {
        if !self.push(N) {
            return false;
        }
        // SAFETY: `push` made them.
        unsafe { self.write_front(header) };
        true
    }

    /// Adds a link header in front, which is marked as such; false if the packet would become too long.
    #[inline]
    #[must_use]
    pub fn prepend_mac<const N: usize>(&mut self, header: &[u8; N]) -> bool {
        if !self.push(N) {
            return false;
        }
        self.set_mac_offset(0);
        // SAFETY: `push` made them.
        unsafe { self.write_front(header) };
        true
    }

    /// Sets the data's first bytes.
    ///
    /// # Safety
    /// That many exist, and no other packet has the buffer.
    #[inline]
    unsafe fn write_front<const N: usize>(&mut self, header: &[u8; N]) {
        // SAFETY: as the caller says.
        unsafe {
            let at = self.header.cast::<u8>().add(DATA_OFFSET + self.headroom());
            at.cast::<[u8; N]>().write(*header);
        }
    }

    /// Adds `n` zero bytes at the end; false if the packet would become too long.
    #[must_use]
    pub fn put(&mut self, n: usize) -> bool {
        if self.tailroom() < n && !self.grow(0, n - self.tailroom()) {
            return false;
        }
        let end = self.span.end();
        // SAFETY: there are n bytes after the data.
        unsafe { self.bytes_mut(end, end + offset(n)) }.fill(0);
        self.span.put(offset(n));
        true
    }

    /// Adds bytes at the end; false if the packet would become too long.
    #[must_use]
    pub fn append(&mut self, data: &[u8]) -> bool {
        let n = data.len();
        if self.tailroom() < n && !self.grow(0, n - self.tailroom()) {
            return false;
        }
        let end = self.span.end();
        // SAFETY: the tailroom of at least n bytes lies between the end of the data and the buffer's capacity.
        copy(unsafe { self.bytes_mut(end, end + offset(n)) }, data);
        self.span.put(offset(n));
        true
    }

    /// Moves the packet into a larger buffer; rare.
    #[cold]
    fn grow(&mut self, front: usize, back: usize) -> bool {
        let capacity = capacity(self.header) as usize;
        let size = capacity.saturating_add(front.saturating_add(back));
        if size > 2 * MAX_PACKET {
            return false;
        }
        // SAFETY: a packet's arena is alive; no reference to it is held here.
        let Some(header) = (unsafe { Arena::take(self.arena_ref().parts().0, size) }) else {
            return false;
        };
        // SAFETY: just taken, and larger by more than what everything lies further back.
        *self = unsafe { self.copy_in(header, offset(front)) };
        true
    }

    /// A packet like this one in a buffer of its own, where everything lies `by` bytes further back.
    ///
    /// # Safety
    /// The buffer was just taken, and everything fits there.
    pub(crate) unsafe fn copy_in(&self, header: NonNull<Header>, by: u32) -> Self {
        // SAFETY: as the caller says.
        unsafe { self.copy_to(header, by) };
        let mut copy = Self { header, ..*self };
        copy.span.clear(SHARED);
        copy.shift_metadata(by);
        copy
    }

    /// Copies data, what was stripped before it, and metadata to another buffer, `by` bytes further back.
    ///
    /// # Safety
    /// That buffer is not in use, and everything fits there.
    #[inline]
    pub(crate) unsafe fn copy_to(&self, header: NonNull<Header>, by: u32) {
        let (first, end) = (self.span.first(), self.span.end());
        // SAFETY: first <= end <= capacity; the caller guarantees that it fits there and that no other packet uses the place.
        unsafe {
            let at = header.cast::<u8>().add(DATA_OFFSET + (first + by) as usize);
            let to = slice::from_raw_parts_mut(at.as_ptr(), (end - first) as usize);
            copy(to, self.bytes(first, end));
        }
        if self.span.has(ANNOTATIONS) || self.span.has_far_mac() {
            // SAFETY: the caller guarantees that no other packet uses it.
            let (to, from) = (unsafe { &mut *header.as_ptr() }, self.h());
            to.annotations = from.annotations;
            to.packet_type = from.packet_type;
            to.mac = from.mac;
        }
    }

    /// Sets the data of a packet of this length.
    #[inline]
    pub(crate) fn fill(&mut self, data: &[u8]) {
        copy(self.data_mut(), data);
    }

    /// Asks the processor to fetch the data's beginning.
    #[inline]
    pub fn prefetch(&self) {
        let data = DATA_OFFSET + self.span.start() as usize;
        prefetch(self.header.as_ptr().cast::<u8>().wrapping_add(data));
    }

    /// Where its buffer belongs.
    #[inline]
    pub(crate) fn arena_ref(&self) -> ArenaRef {
        // SAFETY: a packet's buffer is alive.
        unsafe { arena::arena_ref(self.header) }
    }

    /// True if other packets may have the same buffer.
    #[inline]
    pub(crate) fn is_shared(&self) -> bool {
        self.span.has(SHARED)
    }

    /// Counts `more` packets that are to have the same buffer.
    #[inline]
    pub(crate) fn add_refs(&mut self, more: usize) {
        // not written without need: a packet that is copied right after would wait for that
        if !self.is_shared() {
            self.span.set(SHARED);
        }
        // SAFETY: the buffer is alive, and no other code reads its number now.
        unsafe { *extra_refs(self.header) += more as u32 };
    }

    /// One of those packets.
    ///
    /// # Safety
    /// It was counted, and a buffer is reserved for it.
    #[inline]
    pub(crate) unsafe fn clone_ref(&self) -> Self {
        Self { ..*self }
    }

    /// Sees to it that no other packet has this one's buffer.
    #[inline]
    pub(crate) fn uniqueify(&mut self) {
        if self.is_shared() {
            // SAFETY: shared until now; no reference to its arena is held.
            unsafe { Arena::unshare(slice::from_mut(self)) };
        }
    }

    /// Sees to it that no other packet has these packets' buffers. Mostly none has, which takes no decisions.
    #[inline]
    pub(crate) fn uniqueify_all(packets: &mut [Self]) {
        let spans = packets.iter().map(|packet| packet.span);
        if spans.fold(DataSpan::NONE, DataSpan::or).has(SHARED) {
            Self::uniqueify_some(packets);
        }
    }

    /// The same where some have.
    #[inline(never)]
    fn uniqueify_some(mut packets: &mut [Self]) {
        while let Some(at) = packets.iter().position(Self::is_shared) {
            packets = &mut packets[at..];
            // SAFETY: the first one is shared; no reference to its arena is held.
            let done = unsafe { Arena::unshare(packets) };
            packets = &mut packets[done..];
        }
    }

    /// The packet is the only one that has its buffer.
    #[inline]
    pub(crate) fn clear_shared(&mut self) {
        self.span.clear(SHARED);
    }

    /// Copies the packet to another buffer, which it alone has from now on.
    ///
    /// # Safety
    /// That one is unused and as large; the one it had belongs to the other packets now.
    #[inline]
    pub(crate) unsafe fn move_to(&mut self, buffer: NonNull<Header>) {
        // SAFETY: first <= end <= capacity of both, as the caller guarantees, and the new one is unused.
        unsafe {
            copy_lines(self.header, buffer, self.span.first(), self.span.end());
            if self.span.has(ANNOTATIONS) || self.span.has_far_mac() {
                self.header.copy_to_nonoverlapping(buffer, 1);
            }
        }
        self.header = buffer;
        self.clear_shared();
    }
}

#[inline]
fn prefetch(at: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a hint, which may point anywhere; every x86_64 has it.
    unsafe {
        core::arch::x86_64::_mm_prefetch(at.cast(), core::arch::x86_64::_MM_HINT_T0);
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}

impl Packet {
    /// Drops packets, those that came from the same pool together.
    ///
    /// # Safety
    /// They are not used any more, nor dropped again.
    #[inline]
    pub(crate) unsafe fn drop_all(mut packets: &[Self]) {
        if let [packet] = packets {
            // SAFETY: as below.
            return unsafe { Arena::put_back_one(packet) };
        }
        while !packets.is_empty() {
            // SAFETY: these packets are gone, as the caller says; no reference to a arena is held.
            let count = unsafe { Arena::put_back(packets) };
            packets = &packets[count..];
        }
    }
}

impl Drop for Packet {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: this is the packet's end; no reference to its arena is held.
        unsafe { Self::drop_all(slice::from_ref(self)) };
    }
}

impl core::fmt::Debug for Packet {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Packet({} bytes)", self.len())
    }
}

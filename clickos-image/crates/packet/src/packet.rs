// SPDX-License-Identifier: Apache-2.0
//! A packet: a private buffer with headroom, header offsets and annotations.
use core::mem::offset_of;
use core::ptr::NonNull;
use core::slice;

use crate::buffer::{BYTES_AT, Header};
use crate::home::Home;
use crate::place::{ANNOTATIONS, MAC, NETWORK, Place, TIMESTAMP};

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
/// Header offsets count from the start of the buffer, so stripping and
/// encapsulating do not move them.
pub struct Packet {
    pub(crate) header: NonNull<Header>,
    /// Invariant: it ends within the buffer.
    pub(crate) place: Place,
}

impl Packet {
    /// A packet of `len` bytes behind `headroom` bytes.
    ///
    /// # Safety
    /// `header` was just taken from its home, and `headroom + len` is at most its capacity.
    #[inline]
    pub(crate) unsafe fn fresh(header: NonNull<Header>, headroom: usize, len: usize) -> Self {
        let place = Place::new(headroom, len);
        Self { header, place }
    }

    #[inline]
    pub(crate) fn h(&self) -> &Header {
        // SAFETY: a packet is the only pointer to its buffer, which lives as long as the packet.
        unsafe { self.header.as_ref() }
    }

    #[inline]
    pub(crate) fn h_mut(&mut self) -> &mut Header {
        // SAFETY: as above, and `&mut self` is the only way there.
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
            let at = self.header.cast::<u8>().add(BYTES_AT + from as usize);
            slice::from_raw_parts(at.as_ptr(), (to - from) as usize)
        }
    }

    /// Like `bytes`.
    ///
    /// # Safety
    /// As `bytes`.
    #[inline]
    pub(crate) unsafe fn bytes_mut(&mut self, from: u32, to: u32) -> &mut [u8] {
        // SAFETY: as in `bytes`, and `&mut self` is the only way there.
        unsafe {
            let at = self.header.cast::<u8>().add(BYTES_AT + from as usize);
            slice::from_raw_parts_mut(at.as_ptr(), (to - from) as usize)
        }
    }

    /// The packet's bytes.
    #[inline]
    pub fn data(&self) -> &[u8] {
        // SAFETY: start <= end <= capacity.
        unsafe { self.bytes(self.place.start(), self.place.end()) }
    }

    /// The packet's bytes, to change in place.
    #[inline]
    pub fn data_mut(&mut self) -> &mut [u8] {
        // SAFETY: start <= end <= capacity.
        unsafe { self.bytes_mut(self.place.start(), self.place.end()) }
    }

    /// Number of bytes of data.
    #[inline]
    pub fn len(&self) -> usize {
        self.place.len() as usize
    }

    /// Whether the packet has no data.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes free before the data.
    #[inline]
    pub fn headroom(&self) -> usize {
        self.place.start() as usize
    }

    /// Bytes free after the data.
    #[inline]
    pub fn tailroom(&self) -> usize {
        (self.h().rare.capacity - self.place.end()) as usize
    }

    /// Removes `n` bytes (at most all) from the front.
    #[inline]
    pub fn pull(&mut self, n: usize) {
        self.place.pull(n);
    }

    /// Removes `n` bytes (at most all) from the end.
    #[inline]
    pub fn take(&mut self, n: usize) {
        self.place.take(offset(n.min(self.len())));
    }

    /// Adds `n` bytes of unspecified content in front; false if the packet would become too long.
    #[inline]
    #[must_use]
    pub fn push(&mut self, n: usize) -> bool {
        if self.headroom() < n && !self.grow(n - self.headroom() + HEADROOM, 0) {
            return false;
        }
        self.place.push(offset(n));
        true
    }

    /// Adds `n` zero bytes at the end; false if the packet would become too long.
    #[must_use]
    pub fn put(&mut self, n: usize) -> bool {
        if self.tailroom() < n && !self.grow(0, n - self.tailroom()) {
            return false;
        }
        let end = self.place.end();
        // SAFETY: there are n bytes behind the data.
        unsafe { self.bytes_mut(end, end + offset(n)) }.fill(0);
        self.place.put(offset(n));
        true
    }

    /// Moves the packet into a larger buffer; rare.
    #[cold]
    fn grow(&mut self, front: usize, back: usize) -> bool {
        let capacity = self.h().rare.capacity as usize;
        let size = capacity.saturating_add(front.saturating_add(back));
        if size > 2 * MAX_PACKET {
            return false;
        }
        // SAFETY: a packet's home lives; no reference to it is held here.
        let Some(header) = (unsafe { Home::take(self.h().home, size) }) else {
            return false;
        };
        let (moved, mut place) = (offset(front), self.place);
        place.shift(moved);
        let mut new = Self { header, place };
        // SAFETY: first <= end <= capacity, in the new buffer `front` further.
        unsafe {
            let bytes = self.bytes(self.place.first(), self.place.end());
            new.bytes_mut(self.place.first() + moved, place.end())
                .copy_from_slice(bytes);
        }
        new.copy_known(self, |at| at.checked_add(moved));
        *self = new;
        true
    }

    /// A packet with `from`'s data, what was stripped before it, and everything known of it.
    ///
    /// # Safety
    /// `header` was just taken from its home, with room for `from`'s headroom and data.
    #[inline]
    pub(crate) unsafe fn like(header: NonNull<Header>, from: &Self) -> Self {
        let place = from.place;
        let mut packet = Self { header, place };
        // SAFETY: first <= end <= capacity of `from`; the caller says that end fits here.
        unsafe {
            let bytes = from.bytes(place.first(), place.end());
            copy(packet.bytes_mut(place.first(), place.end()), bytes);
        }
        if place.has_any() {
            packet.copy_known(from, Some);
        }
        packet
    }

    /// Sets the data of a packet of this length.
    #[inline]
    pub(crate) fn fill(&mut self, data: &[u8]) {
        copy(self.data_mut(), data);
    }

    /// Asks the processor to fetch what elements look at first.
    #[inline]
    pub fn prefetch(&self) {
        let header = self.header.as_ptr();
        let data = BYTES_AT + self.place.start() as usize;
        prefetch(header.cast::<u8>().wrapping_add(data));
        if self.place.has(ANNOTATIONS | NETWORK) {
            prefetch(
                header
                    .cast::<u8>()
                    .wrapping_add(offset_of!(Header, annotations)),
            );
        }
        if self.place.has(TIMESTAMP | MAC) {
            prefetch(header.cast());
        }
    }
}

/// Copies `from` over `to`, which is as long. Short ones without a call: first and last part, which may overlap.
#[inline]
fn copy(to: &mut [u8], from: &[u8]) {
    match from.len() {
        16..=32 => copy_ends::<16>(to, from),
        33..=64 => copy_ends::<32>(to, from),
        65..=128 => copy_ends::<64>(to, from),
        _ => to.copy_from_slice(from),
    }
}

#[inline]
fn copy_ends<const N: usize>(to: &mut [u8], from: &[u8]) {
    if let (Some(to), Some(from)) = (to.first_chunk_mut::<N>(), from.first_chunk()) {
        *to = *from;
    }
    if let (Some(to), Some(from)) = (to.last_chunk_mut::<N>(), from.last_chunk()) {
        *to = *from;
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
    /// Nobody uses them any more, nor drops them again.
    #[inline]
    pub(crate) unsafe fn drop_all(mut packets: &[Self]) {
        while let Some((first, others)) = packets.split_first() {
            let headers = others.iter().map(|packet| packet.header);
            // SAFETY: these were the only pointers to their buffers; no reference to a home is held.
            let count = unsafe { Home::put_back_alike(first.header, headers) };
            packets = &packets[count..];
        }
    }
}

impl Drop for Packet {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: this was the only pointer to the buffer; no reference to its home is held.
        unsafe { Home::put_back(self.header) };
    }
}

impl core::fmt::Debug for Packet {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Packet({} bytes)", self.len())
    }
}

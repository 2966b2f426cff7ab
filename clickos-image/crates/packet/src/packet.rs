// SPDX-License-Identifier: Apache-2.0
//! A packet: a private buffer with headroom, header offsets and annotations.
use core::ptr::NonNull;
use core::slice;

use crate::anno::Annotations;
use crate::buffer::{BYTES_AT, Header, Meta, NONE};
use crate::home::Home;

/// Bytes kept free before the data of a fresh packet, for encapsulation.
pub const HEADROOM: usize = 128;
/// The longest packet the engine carries.
pub const MAX_PACKET: usize = 65_535 + 64;

/// One packet. Dropping it gives its buffer back to the pool it came from.
///
/// Header offsets count from the start of the buffer, so stripping and
/// encapsulating do not move them.
pub struct Packet {
    header: NonNull<Header>,
}

/// An offset for `Meta`; what does not fit is none.
#[inline]
fn offset(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(NONE)
}

impl Packet {
    /// A packet of `len` bytes behind `headroom` bytes.
    ///
    /// # Safety
    /// `header` was just taken from its home, and `headroom + len` is at most its capacity.
    #[inline]
    pub(crate) unsafe fn fresh(header: NonNull<Header>, headroom: usize, len: usize) -> Self {
        let mut packet = Self { header };
        packet.h_mut().meta = Meta::fresh(offset(headroom), offset(headroom + len));
        packet
    }

    #[inline]
    fn h(&self) -> &Header {
        // SAFETY: a packet is the only pointer to its buffer, which lives as long as the packet.
        unsafe { self.header.as_ref() }
    }

    #[inline]
    fn h_mut(&mut self) -> &mut Header {
        // SAFETY: as above, and `&mut self` is the only way there.
        unsafe { self.header.as_mut() }
    }

    #[inline]
    fn m(&self) -> &Meta {
        &self.h().meta
    }

    #[inline]
    fn m_mut(&mut self) -> &mut Meta {
        &mut self.h_mut().meta
    }

    /// The buffer's bytes between two offsets.
    ///
    /// # Safety
    /// `from <= to`, and `to` is at most the buffer's capacity.
    #[inline]
    unsafe fn bytes(&self, from: u32, to: u32) -> &[u8] {
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
    unsafe fn bytes_mut(&mut self, from: u32, to: u32) -> &mut [u8] {
        // SAFETY: as in `bytes`, and `&mut self` is the only way there.
        unsafe {
            let at = self.header.cast::<u8>().add(BYTES_AT + from as usize);
            slice::from_raw_parts_mut(at.as_ptr(), (to - from) as usize)
        }
    }

    /// The packet's bytes.
    #[inline]
    pub fn data(&self) -> &[u8] {
        let m = self.m();
        // SAFETY: start <= end <= capacity.
        unsafe { self.bytes(m.start, m.end) }
    }

    /// The packet's bytes, to change in place.
    #[inline]
    pub fn data_mut(&mut self) -> &mut [u8] {
        let (start, end) = (self.m().start, self.m().end);
        // SAFETY: start <= end <= capacity.
        unsafe { self.bytes_mut(start, end) }
    }

    /// Number of bytes of data.
    #[inline]
    pub fn len(&self) -> usize {
        (self.m().end - self.m().start) as usize
    }

    /// Whether the packet has no data.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes free before the data.
    #[inline]
    pub fn headroom(&self) -> usize {
        self.m().start as usize
    }

    /// Bytes free after the data.
    #[inline]
    pub fn tailroom(&self) -> usize {
        (self.h().capacity - self.m().end) as usize
    }

    /// Removes `n` bytes (at most all) from the front.
    #[inline]
    pub fn pull(&mut self, n: usize) {
        let n = n.min(self.len());
        self.m_mut().start += offset(n);
    }

    /// Removes `n` bytes (at most all) from the end.
    #[inline]
    pub fn take(&mut self, n: usize) {
        let n = n.min(self.len());
        self.m_mut().end -= offset(n);
    }

    /// Adds `n` bytes of unspecified content in front; false if the packet would become too long.
    #[inline]
    #[must_use]
    pub fn push(&mut self, n: usize) -> bool {
        if self.headroom() < n && !self.grow(n - self.headroom() + HEADROOM, 0) {
            return false;
        }
        let m = self.m_mut();
        m.start -= offset(n);
        m.first = m.first.min(m.start);
        true
    }

    /// Adds `n` zero bytes at the end; false if the packet would become too long.
    #[must_use]
    pub fn put(&mut self, n: usize) -> bool {
        if self.tailroom() < n && !self.grow(0, n - self.tailroom()) {
            return false;
        }
        let end = self.m().end;
        let new = end + offset(n);
        // SAFETY: there are n bytes behind the data.
        unsafe { self.bytes_mut(end, new) }.fill(0);
        self.m_mut().end = new;
        true
    }

    /// Moves the packet into a larger buffer; rare.
    #[cold]
    fn grow(&mut self, front: usize, back: usize) -> bool {
        let size = (self.h().capacity as usize).saturating_add(front.saturating_add(back));
        if size > 2 * MAX_PACKET {
            return false;
        }
        // SAFETY: a packet's home lives; no reference to it is held here.
        let Some(buffer) = (unsafe { Home::take(self.h().home, size) }) else {
            return false;
        };
        let moved = offset(front);
        let (first, end) = (self.m().first, self.m().end);
        // SAFETY: front + end is at most size.
        let mut new = unsafe { Self::fresh(buffer, front, end as usize) };
        // SAFETY: first <= end <= capacity, in the new buffer `front` further.
        unsafe {
            let bytes = self.bytes(first, end);
            new.bytes_mut(first + moved, end + moved)
                .copy_from_slice(bytes);
        }
        *new.m_mut() = self.m().shifted(moved);
        new.copy_annotations(self);
        *self = new;
        true
    }

    /// Copies header offsets, timestamp and annotations of `from`, whose data begins alike.
    pub fn copy_meta(&mut self, from: &Self) {
        let (f, start) = (*from.m(), self.m().start);
        let place = |at: u32| match (at, (at.wrapping_add(start)).checked_sub(f.start)) {
            (NONE, _) | (_, None) => NONE,
            (_, Some(at)) => at,
        };
        let t = self.m_mut();
        (t.mac, t.network, t.transport) = (place(f.mac), place(f.network), place(f.transport));
        t.timestamp_ns = f.timestamp_ns;
        self.copy_annotations(from);
    }

    /// A packet with `from`'s data, what was stripped before it, and everything known of it.
    ///
    /// # Safety
    /// `header` was just taken from its home, with room for `from`'s headroom and data.
    #[inline]
    pub(crate) unsafe fn like(header: NonNull<Header>, from: &Self) -> Self {
        let mut packet = Self { header };
        let m = *from.m();
        // SAFETY: first <= start <= end <= capacity of `from`; the caller says that end fits here.
        unsafe {
            let bytes = from.bytes(m.first, m.end);
            copy(packet.bytes_mut(m.first, m.end), bytes);
        }
        *packet.m_mut() = m;
        packet.copy_annotations(from);
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
        let at = self.header.cast::<u8>().as_ptr();
        prefetch(at);
        prefetch(at.wrapping_add(BYTES_AT + HEADROOM));
    }

    /// Annotations, as Click's 48 bytes.
    #[inline]
    pub fn anno(&self) -> &Annotations {
        if self.m().annotated {
            &self.h().annotations.0
        } else {
            &Annotations::NONE
        }
    }

    /// Annotations, to change.
    #[inline]
    pub fn anno_mut(&mut self) -> &mut Annotations {
        let header = self.h_mut();
        if !header.meta.annotated {
            header.meta.annotated = true;
            header.annotations.0 = Annotations::NONE;
        }
        &mut header.annotations.0
    }

    /// Takes over the annotations of `from`, if it has any.
    #[inline]
    fn copy_annotations(&mut self, from: &Self) {
        self.m_mut().annotated = from.m().annotated;
        if from.m().annotated {
            self.h_mut().annotations.0 = from.h().annotations.0;
        }
    }

    /// Nanoseconds since the epoch at which the packet came in; 0 if unknown.
    #[inline]
    pub fn timestamp_ns(&self) -> u64 {
        self.m().timestamp_ns
    }

    /// Sets the timestamp annotation.
    #[inline]
    pub fn set_timestamp_ns(&mut self, ns: u64) {
        self.m_mut().timestamp_ns = ns;
    }

    #[inline]
    fn relative(&self, absolute: u32) -> Option<isize> {
        let start = isize::try_from(self.m().start).ok()?;
        let at = isize::try_from(absolute).ok()?;
        (absolute != NONE).then_some(at - start)
    }

    /// Where the link header begins, relative to the data; negative if it was stripped.
    pub fn mac_offset(&self) -> Option<isize> {
        self.relative(self.m().mac)
    }

    /// Sets the link header, relative to the data.
    pub fn set_mac_offset(&mut self, from_data: isize) {
        let at = isize::try_from(self.m().start).ok();
        let at = at.and_then(|start| start.checked_add(from_data));
        self.m_mut().mac = at.and_then(|at| u32::try_from(at).ok()).unwrap_or(NONE);
    }

    /// Where the network header begins, relative to the data.
    #[inline]
    pub fn network_offset(&self) -> Option<isize> {
        self.relative(self.m().network)
    }

    /// Where the transport header begins, relative to the data.
    #[inline]
    pub fn transport_offset(&self) -> Option<isize> {
        self.relative(self.m().transport)
    }

    /// Sets network and transport header: the network header begins at `at` of the data and is `len` long.
    #[inline]
    pub fn set_network(&mut self, at: usize, len: usize) {
        let m = self.m_mut();
        m.network = offset((m.start as usize).saturating_add(at));
        m.transport = offset((m.network as usize).saturating_add(len));
    }

    /// Forgets the network and transport header.
    #[inline]
    pub fn clear_network(&mut self) {
        let m = self.m_mut();
        (m.network, m.transport) = (NONE, NONE);
    }

    #[inline]
    fn rest_from(&self, at: u32) -> Option<&[u8]> {
        let end = self.m().end;
        // SAFETY: end <= capacity; NONE is greater than any end.
        (at <= end).then(|| unsafe { self.bytes(at, end) })
    }

    #[inline]
    fn rest_from_mut(&mut self, at: u32) -> Option<&mut [u8]> {
        let end = self.m().end;
        // SAFETY: end <= capacity; NONE is greater than any end.
        (at <= end).then(|| unsafe { self.bytes_mut(at, end) })
    }

    /// Bytes from the link header to the end of the packet, if it is known.
    #[inline]
    pub fn mac(&self) -> Option<&[u8]> {
        self.rest_from(self.m().mac)
    }

    /// Bytes from the network header to the end of the packet, if it is known.
    #[inline]
    pub fn network(&self) -> Option<&[u8]> {
        self.rest_from(self.m().network)
    }

    /// Like [`Packet::network`], to change in place.
    #[inline]
    pub fn network_mut(&mut self) -> Option<&mut [u8]> {
        self.rest_from_mut(self.m().network)
    }

    /// Bytes from the transport header to the end of the packet, if it is known.
    #[inline]
    pub fn transport(&self) -> Option<&[u8]> {
        self.rest_from(self.m().transport)
    }

    /// Like [`Packet::transport`], to change in place.
    #[inline]
    pub fn transport_mut(&mut self) -> Option<&mut [u8]> {
        self.rest_from_mut(self.m().transport)
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

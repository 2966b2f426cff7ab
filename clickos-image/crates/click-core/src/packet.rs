// SPDX-License-Identifier: Apache-2.0
//! A packet: a private buffer with headroom, header offsets and annotations.
use alloc::boxed::Box;
use alloc::rc::Rc;

use crate::anno::Annotations;
use crate::pool::{Home, new_buffer};

/// Bytes kept free before the data of a fresh packet, for encapsulation.
pub const HEADROOM: usize = 128;
/// Bytes of a pooled buffer: headroom, 2 KiB of data, tailroom.
pub const BUFFER_BYTES: usize = HEADROOM + 2048 + 128;
/// The longest packet the engine carries.
pub const MAX_PACKET: usize = 65_535 + 64;

/// What a `Packet` owns; it goes back to its pool when the packet is dropped.
pub(crate) struct Buffer {
    pub(crate) bytes: Box<[u8]>,
    start: usize,
    end: usize,
    mac: Option<u32>,
    network: Option<u32>,
    transport: Option<u32>,
    timestamp_ns: u64,
    annotations: Annotations,
    pub(crate) home: Rc<Home>,
}

impl Buffer {
    pub(crate) fn new(bytes: Box<[u8]>, home: Rc<Home>) -> Self {
        Self {
            bytes,
            start: 0,
            end: 0,
            mac: None,
            network: None,
            transport: None,
            timestamp_ns: 0,
            annotations: Annotations::default(),
            home,
        }
    }
}

/// One packet. Dropping it gives its buffer back to the pool it came from.
///
/// Header offsets count from the start of the buffer, so stripping and
/// encapsulating do not move them.
pub struct Packet {
    buffer: Option<Box<Buffer>>,
}

const OWNED: &str = "a packet owns its buffer until it is dropped";

impl Packet {
    pub(crate) fn fresh(mut buffer: Box<Buffer>, headroom: usize, len: usize) -> Self {
        buffer.start = headroom;
        buffer.end = headroom + len;
        buffer.mac = None;
        buffer.network = None;
        buffer.transport = None;
        buffer.timestamp_ns = 0;
        buffer.annotations = Annotations::default();
        Self {
            buffer: Some(buffer),
        }
    }

    fn b(&self) -> &Buffer {
        self.buffer.as_ref().expect(OWNED)
    }

    fn b_mut(&mut self) -> &mut Buffer {
        self.buffer.as_mut().expect(OWNED)
    }

    /// The packet's bytes.
    pub fn data(&self) -> &[u8] {
        let b = self.b();
        &b.bytes[b.start..b.end]
    }

    /// The packet's bytes, to change in place.
    pub fn data_mut(&mut self) -> &mut [u8] {
        let b = self.b_mut();
        &mut b.bytes[b.start..b.end]
    }

    /// Number of bytes of data.
    pub fn len(&self) -> usize {
        let b = self.b();
        b.end - b.start
    }

    /// Whether the packet has no data.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes free before the data.
    pub fn headroom(&self) -> usize {
        self.b().start
    }

    /// Bytes free after the data.
    pub fn tailroom(&self) -> usize {
        let b = self.b();
        b.bytes.len() - b.end
    }

    /// Removes `n` bytes (at most all) from the front.
    pub fn pull(&mut self, n: usize) {
        let b = self.b_mut();
        b.start = (b.start + n).min(b.end);
    }

    /// Removes `n` bytes (at most all) from the end.
    pub fn take(&mut self, n: usize) {
        let b = self.b_mut();
        b.end = b.end.saturating_sub(n).max(b.start);
    }

    /// Adds `n` bytes of unspecified content in front; false if the packet would become too long.
    #[must_use]
    pub fn push(&mut self, n: usize) -> bool {
        if self.headroom() < n && !self.grow(n - self.headroom() + HEADROOM, 0) {
            return false;
        }
        self.b_mut().start -= n;
        true
    }

    /// Adds `n` zero bytes at the end; false if the packet would become too long.
    #[must_use]
    pub fn put(&mut self, n: usize) -> bool {
        if self.tailroom() < n && !self.grow(0, n - self.tailroom()) {
            return false;
        }
        let b = self.b_mut();
        let end = b.end;
        b.bytes[end..end + n].fill(0);
        b.end += n;
        true
    }

    /// Moves the packet into a larger buffer of its own; rare, so it may allocate.
    fn grow(&mut self, front: usize, back: usize) -> bool {
        let b = self.b_mut();
        let size = b.bytes.len() + front + back;
        if size > 2 * MAX_PACKET {
            return false;
        }
        let mut bytes = new_buffer(size);
        // stripped headers in front of the data stay reachable
        bytes[front..front + b.end].copy_from_slice(&b.bytes[..b.end]);
        b.bytes = bytes;
        b.start += front;
        b.end += front;
        let moved = u32::try_from(front).expect("bounded by MAX_PACKET");
        for offset in [&mut b.mac, &mut b.network, &mut b.transport] {
            *offset = offset.map(|o| o + moved);
        }
        true
    }

    /// Copies header offsets, timestamp and annotations of `from`, whose data begins alike.
    pub fn copy_meta(&mut self, from: &Self) {
        let (f, t) = (from.b(), self.b_mut());
        let place = |o: Option<u32>| {
            o.and_then(|o| (o as usize + t.start).checked_sub(f.start))
                .and_then(|o| o.try_into().ok())
        };
        (t.mac, t.network, t.transport) = (place(f.mac), place(f.network), place(f.transport));
        t.timestamp_ns = f.timestamp_ns;
        t.annotations = f.annotations;
    }

    /// Copies the `n` bytes in front of `from`'s data in front of ours.
    pub(crate) fn copy_front(&mut self, from: &Self, n: usize) {
        let (f, t) = (from.b(), self.b_mut());
        let n = n.min(f.start).min(t.start);
        t.bytes[t.start - n..t.start].copy_from_slice(&f.bytes[f.start - n..f.start]);
    }

    /// Annotations, as Click's 48 bytes.
    pub fn anno(&self) -> &Annotations {
        &self.b().annotations
    }

    /// Annotations, to change.
    pub fn anno_mut(&mut self) -> &mut Annotations {
        &mut self.b_mut().annotations
    }

    /// Nanoseconds since the epoch at which the packet came in; 0 if unknown.
    pub fn timestamp_ns(&self) -> u64 {
        self.b().timestamp_ns
    }

    /// Sets the timestamp annotation.
    pub fn set_timestamp_ns(&mut self, ns: u64) {
        self.b_mut().timestamp_ns = ns;
    }

    fn offset(&self, absolute: Option<u32>) -> Option<isize> {
        let start = isize::try_from(self.b().start).ok()?;
        Some(isize::try_from(absolute?).ok()? - start)
    }

    fn absolute(&self, from_data: isize) -> Option<u32> {
        let start = isize::try_from(self.b().start).ok()?;
        u32::try_from(start + from_data).ok()
    }

    /// Where the link header begins, relative to the data; negative if it was stripped.
    pub fn mac_offset(&self) -> Option<isize> {
        self.offset(self.b().mac)
    }

    /// Sets the link header, relative to the data.
    pub fn set_mac_offset(&mut self, offset: isize) {
        self.b_mut().mac = self.absolute(offset);
    }

    /// Where the network header begins, relative to the data.
    pub fn network_offset(&self) -> Option<isize> {
        self.offset(self.b().network)
    }

    /// Where the transport header begins, relative to the data.
    pub fn transport_offset(&self) -> Option<isize> {
        self.offset(self.b().transport)
    }

    /// Sets network and transport header: the network header begins at `offset` of the data and is `len` long.
    pub fn set_network(&mut self, offset: usize, len: usize) {
        let b = self.b_mut();
        b.network = u32::try_from(b.start + offset).ok();
        b.transport = u32::try_from(b.start + offset + len).ok();
    }

    /// Forgets the network and transport header.
    pub fn clear_network(&mut self) {
        let b = self.b_mut();
        (b.network, b.transport) = (None, None);
    }

    fn rest_from(&self, at: Option<u32>) -> Option<&[u8]> {
        let b = self.b();
        b.bytes.get(at? as usize..b.end)
    }

    /// Bytes from the link header to the end of the packet, if it is known.
    pub fn mac(&self) -> Option<&[u8]> {
        self.rest_from(self.b().mac)
    }

    /// Bytes from the network header to the end of the packet, if it is known.
    pub fn network(&self) -> Option<&[u8]> {
        self.rest_from(self.b().network)
    }

    /// Like [`Packet::network`], to change in place.
    pub fn network_mut(&mut self) -> Option<&mut [u8]> {
        let b = self.b_mut();
        b.bytes.get_mut(b.network? as usize..b.end)
    }

    /// Bytes from the transport header to the end of the packet, if it is known.
    pub fn transport(&self) -> Option<&[u8]> {
        self.rest_from(self.b().transport)
    }

    /// Like [`Packet::transport`], to change in place.
    pub fn transport_mut(&mut self) -> Option<&mut [u8]> {
        let b = self.b_mut();
        b.bytes.get_mut(b.transport? as usize..b.end)
    }
}

impl Drop for Packet {
    fn drop(&mut self) {
        if let Some(buffer) = self.buffer.take() {
            let home = Rc::clone(&buffer.home);
            home.take_back(buffer);
        }
    }
}

impl core::fmt::Debug for Packet {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Packet({} bytes)", self.len())
    }
}

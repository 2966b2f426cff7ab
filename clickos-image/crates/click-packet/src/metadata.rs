// SPDX-License-Identifier: Apache-2.0
//! Metadata of a packet: header offsets, annotations, the time it came in.
use crate::anno::{self, PacketType};
use crate::buffer::Header;
use crate::data_span::{ANNOTATIONS, NETWORK};
use crate::packet::Packet;

/// Bits of the offset of the network header; the others are the distance to the transport header.
const NETWORK_BITS: u32 = 18;

/// Offsets of the network header, counted from the first byte of the buffer, and of the transport header, counted
/// from there. Four bytes, so that a packet is four words.
#[derive(Clone, Copy)]
pub struct HeaderOffsets(u32);

impl HeaderOffsets {
    pub const NONE: Self = Self(0);

    /// `None` if no packet has headers there.
    #[inline]
    fn new(network: usize, transport: usize) -> Option<Self> {
        if network >> NETWORK_BITS > 0 || transport >> (u32::BITS - NETWORK_BITS) > 0 {
            return None;
        }
        Some(Self((network | transport << NETWORK_BITS) as u32))
    }

    #[inline]
    fn network(self) -> u32 {
        self.0 & ((1 << NETWORK_BITS) - 1)
    }

    /// From the one to the other.
    #[inline]
    fn distance(self) -> u32 {
        self.0 >> NETWORK_BITS
    }

    #[inline]
    fn transport(self) -> u32 {
        self.network() + self.distance()
    }
}

impl Packet {
    /// Shifts all offsets by `by` bytes, for a larger buffer.
    pub(crate) fn shift_metadata(&mut self, by: u32) {
        let network = self.headers.network() + by;
        let moved = HeaderOffsets::new(network as usize, self.headers.distance() as usize);
        self.set_headers(moved.filter(|_| self.span.has(NETWORK)));
        if let Some(mac) = self.mac_at() {
            self.set_mac_at(mac.checked_add(by));
        }
        self.span.shift(by);
    }

    #[inline]
    fn set_headers(&mut self, headers: Option<HeaderOffsets>) {
        match headers {
            None => self.span.clear(NETWORK),
            Some(headers) => {
                self.span.set(NETWORK);
                self.headers = headers;
            }
        }
    }

    #[inline]
    fn set_mac_at(&mut self, at: Option<u32>) {
        if let (true, Some(at)) = (self.span.set_mac(at), at) {
            self.h_mut().mac = at;
        }
    }

    /// Annotations, of which the destination address does not count.
    #[inline]
    pub(crate) fn annotations(&self) -> &[u8; anno::SIZE] {
        if self.span.has(ANNOTATIONS) {
            &self.h().annotations
        } else {
            &[0; anno::SIZE]
        }
    }

    /// The same, to change.
    #[inline]
    pub(crate) fn annotations_mut(&mut self) -> &mut [u8; anno::SIZE] {
        &mut self.begin_annotations().annotations
    }

    /// The header, where annotations are kept from now on.
    #[inline]
    fn begin_annotations(&mut self) -> &mut Header {
        let known = self.span.has(ANNOTATIONS);
        self.uniqueify();
        self.span.set(ANNOTATIONS);
        // SAFETY: no other packet has this buffer any more, and `&mut self` is the only way there.
        let header = unsafe { self.header.as_mut() };
        if !known {
            header.annotations = [0; anno::SIZE];
            header.packet_type = PacketType::Host as u8;
        }
        header
    }

    #[inline]
    pub(crate) fn packet_type(&self) -> PacketType {
        if self.span.has(ANNOTATIONS) {
            PacketType::from_bits(self.h().packet_type)
        } else {
            PacketType::Host
        }
    }

    #[inline]
    pub(crate) fn set_packet_type(&mut self, packet_type: PacketType) {
        if self.packet_type() != packet_type {
            self.begin_annotations().packet_type = packet_type as u8;
        }
    }

    /// Nanoseconds since the epoch at which the packet came in; 0 if unknown.
    #[inline]
    pub fn timestamp_ns(&self) -> u64 {
        self.timestamp_ns
    }

    /// Sets the timestamp annotation.
    #[inline]
    pub fn set_timestamp_ns(&mut self, ns: u64) {
        self.timestamp_ns = ns;
    }

    /// Where an offset lies relative to the data.
    #[inline]
    fn relative(&self, at: u32) -> Option<isize> {
        Some(isize::try_from(at).ok()? - isize::try_from(self.span.start()).ok()?)
    }

    #[inline]
    fn network_at(&self) -> Option<u32> {
        self.span.has(NETWORK).then(|| self.headers.network())
    }

    #[inline]
    fn transport_at(&self) -> Option<u32> {
        self.span.has(NETWORK).then(|| self.headers.transport())
    }

    #[inline]
    fn mac_at(&self) -> Option<u32> {
        self.span.mac(|| self.h().mac)
    }

    /// Where the link header begins, relative to the data; negative if it was stripped.
    pub fn mac_offset(&self) -> Option<isize> {
        self.relative(self.mac_at()?)
    }

    /// Sets the link header, relative to the data.
    pub fn set_mac_offset(&mut self, from_data: isize) {
        let start = isize::try_from(self.span.start()).ok();
        self.set_mac_at(start.and_then(|start| u32::try_from(start.checked_add(from_data)?).ok()));
    }

    /// Where the network header begins, relative to the data.
    #[inline]
    pub fn network_offset(&self) -> Option<isize> {
        self.relative(self.network_at()?)
    }

    /// Where the transport header begins, relative to the data.
    #[inline]
    pub fn transport_offset(&self) -> Option<isize> {
        self.relative(self.transport_at()?)
    }

    /// Bytes of the network header, up to the transport header.
    #[inline]
    pub fn network_len(&self) -> Option<usize> {
        (self.span.has(NETWORK)).then(|| self.headers.distance() as usize)
    }

    /// Sets network and transport header: the network header begins at `at` of the data and is `len` long. Offsets
    /// that no packet can have make both unknown.
    #[inline]
    pub fn set_network(&mut self, at: usize, len: usize) {
        let network = at.checked_add(self.span.start() as usize);
        self.set_headers(network.and_then(|network| HeaderOffsets::new(network, len)));
    }

    /// Forgets the network and transport header.
    #[inline]
    pub fn clear_network(&mut self) {
        self.span.clear(NETWORK);
    }

    #[inline]
    fn rest_from(&self, at: u32) -> Option<&[u8]> {
        let end = self.span.end();
        // SAFETY: end <= capacity.
        (at <= end).then(|| unsafe { self.bytes(at, end) })
    }

    #[inline]
    fn rest_from_mut(&mut self, at: u32) -> Option<&mut [u8]> {
        let end = self.span.end();
        // SAFETY: end <= capacity.
        (at <= end).then(|| unsafe { self.bytes_mut(at, end) })
    }

    /// Bytes from the link header to the end of the packet, if it is known.
    #[inline]
    pub fn mac(&self) -> Option<&[u8]> {
        self.rest_from(self.mac_at()?)
    }

    /// Bytes from the network header to the end of the packet, if it is known.
    #[inline]
    pub fn network(&self) -> Option<&[u8]> {
        self.rest_from(self.network_at()?)
    }

    /// Like [`Packet::network`], to change in place.
    #[inline]
    pub fn network_mut(&mut self) -> Option<&mut [u8]> {
        self.rest_from_mut(self.network_at()?)
    }

    /// Bytes from the transport header to the end of the packet, if it is known.
    #[inline]
    pub fn transport(&self) -> Option<&[u8]> {
        self.rest_from(self.transport_at()?)
    }

    /// Like [`Packet::transport`], to change in place.
    #[inline]
    pub fn transport_mut(&mut self) -> Option<&mut [u8]> {
        self.rest_from_mut(self.transport_at()?)
    }
}

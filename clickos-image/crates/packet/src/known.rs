// SPDX-License-Identifier: Apache-2.0
//! What is known of a packet beside its bytes: headers, annotations, the time it came in.
use crate::anno::Annotations;
use crate::packet::Packet;
use crate::place::{ANNOTATIONS, MAC, NETWORK, TIMESTAMP};

impl Packet {
    /// Copies header offsets, timestamp and annotations of `from`, whose data begins alike.
    pub fn copy_meta(&mut self, from: &Self) {
        let (there, here) = (from.place.start(), self.place.start());
        self.copy_known(from, |at| (at.checked_add(here)?).checked_sub(there));
    }

    /// Takes over what `from`'s header tells, and nothing else; `to` says what offsets become.
    pub(crate) fn copy_known(&mut self, from: &Self, to: impl Fn(u32) -> Option<u32>) {
        let (known, old) = (from.place, from.h());
        self.place.copy_flags(known);
        if known.has(ANNOTATIONS) {
            self.h_mut().annotations = old.annotations;
        }
        if known.has(NETWORK) {
            self.h_mut().transport = old.transport;
            self.set_network_at(to(old.network));
        }
        if known.has(MAC) {
            self.set_mac_at(to(old.rare.mac));
        }
        if known.has(TIMESTAMP) {
            self.h_mut().rare.timestamp_ns = old.rare.timestamp_ns;
        }
    }

    #[inline]
    fn set_network_at(&mut self, at: Option<u32>) {
        match at {
            None => self.place.clear(NETWORK),
            Some(at) => {
                self.place.set(NETWORK);
                self.h_mut().network = at;
            }
        }
    }

    fn set_mac_at(&mut self, at: Option<u32>) {
        match at {
            None => self.place.clear(MAC),
            Some(at) => {
                self.place.set(MAC);
                self.h_mut().rare.mac = at;
            }
        }
    }

    /// Annotations, as Click's 48 bytes.
    #[inline]
    pub fn anno(&self) -> &Annotations {
        if self.place.has(ANNOTATIONS) {
            &self.h().annotations
        } else {
            &Annotations::NONE
        }
    }

    /// Annotations, to change.
    #[inline]
    pub fn anno_mut(&mut self) -> &mut Annotations {
        if !self.place.has(ANNOTATIONS) {
            self.place.set(ANNOTATIONS);
            self.h_mut().annotations = Annotations::NONE;
        }
        &mut self.h_mut().annotations
    }

    /// Nanoseconds since the epoch at which the packet came in; 0 if unknown.
    #[inline]
    pub fn timestamp_ns(&self) -> u64 {
        if self.place.has(TIMESTAMP) {
            self.h().rare.timestamp_ns
        } else {
            0
        }
    }

    /// Sets the timestamp annotation.
    #[inline]
    pub fn set_timestamp_ns(&mut self, ns: u64) {
        if ns == 0 {
            return self.place.clear(TIMESTAMP);
        }
        self.place.set(TIMESTAMP);
        self.h_mut().rare.timestamp_ns = ns;
    }

    /// Where an offset lies relative to the data.
    #[inline]
    fn relative(&self, at: u32) -> Option<isize> {
        Some(isize::try_from(at).ok()? - isize::try_from(self.place.start()).ok()?)
    }

    #[inline]
    fn network_at(&self) -> Option<u32> {
        self.place.has(NETWORK).then(|| self.h().network)
    }

    #[inline]
    fn transport_at(&self) -> Option<u32> {
        Some(self.network_at()?.wrapping_add(self.h().transport.into()))
    }

    #[inline]
    fn mac_at(&self) -> Option<u32> {
        self.place.has(MAC).then(|| self.h().rare.mac)
    }

    /// Where the link header begins, relative to the data; negative if it was stripped.
    pub fn mac_offset(&self) -> Option<isize> {
        self.relative(self.mac_at()?)
    }

    /// Sets the link header, relative to the data.
    pub fn set_mac_offset(&mut self, from_data: isize) {
        let start = isize::try_from(self.place.start()).ok();
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

    /// Sets network and transport header: the network header begins at `at` of the data and is `len` long. Offsets
    /// that no packet can have make both unknown.
    #[inline]
    pub fn set_network(&mut self, at: usize, len: usize) {
        let start = self.place.start();
        let network = u32::try_from(at).ok().and_then(|at| at.checked_add(start));
        let transport = u16::try_from(len).ok();
        self.set_network_at(transport.and(network));
        self.h_mut().transport = transport.unwrap_or(0);
    }

    /// Forgets the network and transport header.
    #[inline]
    pub fn clear_network(&mut self) {
        self.place.clear(NETWORK);
    }

    #[inline]
    fn rest_from(&self, at: u32) -> Option<&[u8]> {
        let end = self.place.end();
        // SAFETY: end <= capacity.
        (at <= end).then(|| unsafe { self.bytes(at, end) })
    }

    #[inline]
    fn rest_from_mut(&mut self, at: u32) -> Option<&mut [u8]> {
        let end = self.place.end();
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

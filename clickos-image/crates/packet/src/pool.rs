// SPDX-License-Identifier: Apache-2.0
//! The packet buffers of a router: bounded in number, reused, never shared between threads.
use core::ptr::NonNull;

use crate::batch::Batch;
use crate::home::Home;
use crate::packet::{HEADROOM, MAX_PACKET, Packet};

/// Hands out packets, at most `limit` at a time.
pub struct PacketPool {
    home: NonNull<Home>,
    limit: usize,
    refused: u64,
}

impl PacketPool {
    /// A pool of at most `limit` packets; buffers are made when first needed.
    pub fn new(limit: usize) -> Self {
        Self {
            home: Home::open(),
            limit,
            refused: 0,
        }
    }

    /// A packet of `len` bytes of unspecified content; `None` when the pool is exhausted or `len` too large.
    #[inline]
    pub fn alloc(&mut self, len: usize) -> Option<Packet> {
        self.alloc_with(HEADROOM, len)
    }

    /// Like [`PacketPool::alloc`] with `headroom` bytes free in front.
    #[inline]
    pub fn alloc_with(&mut self, headroom: usize, len: usize) -> Option<Packet> {
        let packet = self.take(headroom, len);
        self.refused += u64::from(packet.is_none());
        packet
    }

    #[inline]
    fn take(&mut self, headroom: usize, len: usize) -> Option<Packet> {
        if self.in_use() >= self.limit || len > MAX_PACKET || headroom > MAX_PACKET {
            return None;
        }
        // SAFETY: the home lives as long as the pool, and no reference to it is held.
        let buffer = unsafe { Home::take(self.home, headroom + len) }?;
        // SAFETY: just taken with this size.
        Some(unsafe { Packet::fresh(buffer, headroom, len) })
    }

    /// A packet with this content.
    #[inline]
    pub fn packet_from(&mut self, data: &[u8]) -> Option<Packet> {
        let mut packet = self.alloc(data.len())?;
        packet.fill(data);
        Some(packet)
    }

    /// A copy of `packet` with its annotations, headers in front of the data included.
    #[inline]
    pub fn duplicate(&mut self, packet: &Packet) -> Option<Packet> {
        let mut copy = self.alloc_with(packet.headroom(), packet.len())?;
        // SAFETY: allocated with the same headroom and length.
        unsafe { copy.copy_all(packet) };
        Some(copy)
    }

    /// Appends copies of as many of these packets as the pool has room for.
    pub fn duplicate_all(&mut self, packets: &Batch, into: &mut Batch) {
        into.extend(packets.iter().map_while(|packet| self.duplicate(packet)));
    }

    /// How many packets are out at the moment.
    #[inline]
    pub fn in_use(&self) -> usize {
        // SAFETY: the home lives as long as the pool, and no other reference to it is held.
        unsafe { self.home.as_ref() }.in_use()
    }

    /// The most packets that may be out at a time.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// How many packets were refused because the pool was exhausted or they were too long.
    pub fn refused(&self) -> u64 {
        self.refused
    }
}

impl Drop for PacketPool {
    fn drop(&mut self) {
        // SAFETY: opened by `new`, closed once, and no reference to it is held.
        unsafe { Home::close(self.home) };
    }
}

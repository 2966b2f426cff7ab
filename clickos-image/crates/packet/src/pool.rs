// SPDX-License-Identifier: Apache-2.0
//! The packet buffers of a router: bounded in number, reused, never shared between threads.
use core::ptr::NonNull;

use crate::batch::Batch;
use crate::buffer::Header;
use crate::home::{Home, SMALL};
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
        let buffer = self.buffer(headroom, len)?;
        // SAFETY: just taken with this size.
        Some(unsafe { Packet::fresh(buffer, headroom, len) })
    }

    #[inline]
    fn buffer(&mut self, headroom: usize, len: usize) -> Option<NonNull<Header>> {
        if self.in_use() >= self.limit || len > MAX_PACKET || headroom > MAX_PACKET {
            return None;
        }
        // SAFETY: the home lives as long as the pool, and no reference to it is held.
        unsafe { Home::take(self.home, headroom + len) }
    }

    /// A packet with this content.
    #[inline]
    pub fn packet_from(&mut self, data: &[u8]) -> Option<Packet> {
        let mut packet = self.alloc(data.len())?;
        packet.fill(data);
        Some(packet)
    }

    /// Appends `n` packets with this content and time, or as many as the pool has room for.
    pub fn packets_from(&mut self, data: &[u8], timestamp_ns: u64, n: usize, into: &mut Batch) {
        let mut left = n;
        while left > 0 {
            // the first may make room for others; those there is room for go without a look at each
            let Some(mut first) = self.packet_from(data) else {
                return;
            };
            first.set_timestamp_ns(timestamp_ns);
            into.push_back(first);
            left -= 1;
            left -= self.ready_packets(data, timestamp_ns, left, into);
        }
    }

    /// Like `packets_from` out of buffers that are free; returns how many.
    #[inline]
    fn ready_packets(
        &mut self,
        data: &[u8],
        timestamp_ns: u64,
        n: usize,
        into: &mut Batch,
    ) -> usize {
        let n = n.min(self.limit.saturating_sub(self.in_use()));
        let before = into.len();
        // SAFETY: the home lives as long as the pool; the reference is not used by what the loop calls.
        let home = unsafe { self.home.as_mut() };
        let buffers = home.take_ready(HEADROOM + data.len(), n);
        into.extend(buffers.map(|buffer| {
            // SAFETY: just taken with this size.
            let mut packet = unsafe { Packet::fresh(buffer, HEADROOM, data.len()) };
            packet.fill(data);
            packet.set_timestamp_ns(timestamp_ns);
            packet
        }));
        into.len() - before
    }

    /// A copy of `packet` with its annotations, headers in front of the data included.
    #[inline]
    pub fn duplicate(&mut self, packet: &Packet) -> Option<Packet> {
        let Some(buffer) = self.buffer(packet.headroom(), packet.len()) else {
            self.refused += 1;
            return None;
        };
        // SAFETY: just taken with room for the same headroom and data.
        Some(unsafe { Packet::like(buffer, packet) })
    }

    /// Appends a copy of each packet for which the pool has room.
    pub fn duplicate_all(&mut self, packets: &Batch, into: &mut Batch) {
        let done = self.duplicate_small(packets, into);
        let rest = packets.iter().skip(done);
        into.extend(rest.filter_map(|packet| self.duplicate(packet)));
    }

    /// Like `duplicate_all` for the first packets, as far as they fit small buffers that are free; returns how many.
    fn duplicate_small(&mut self, packets: &Batch, into: &mut Batch) -> usize {
        let room = self.limit.saturating_sub(self.in_use());
        let fit = |packet: &&Packet| packet.headroom() + packet.len() <= SMALL;
        let n = packets.iter().take(room).take_while(fit).count();
        let before = into.len();
        // SAFETY: the home lives as long as the pool; the reference is not used by what the loop calls.
        let buffers = unsafe { self.home.as_mut() }.take_ready(SMALL, n);
        let pairs = buffers.zip(packets.iter());
        // SAFETY: just taken with room for so much headroom and data.
        into.extend(pairs.map(|(buffer, packet)| unsafe { Packet::like(buffer, packet) }));
        into.len() - before
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

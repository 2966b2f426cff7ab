// SPDX-License-Identifier: Apache-2.0
//! The packet buffers of a router: bounded in number, reused, never used by two threads at the same time.
use core::ptr::NonNull;

use crate::arena::{Arena, ArenaRef};
use crate::batch::Batch;
use crate::buffer::Header;
use crate::packet::{HEADROOM, MAX_PACKET, Packet};

/// Hands out packets, at most `limit` at a time.
pub struct PacketPool {
    pub(crate) arena: NonNull<Arena>,
    pub(crate) limit: usize,
    refused: u64,
}

impl PacketPool {
    /// A pool of at most `limit` packets; buffers are made when first needed.
    pub fn new(limit: usize) -> Self {
        Self::at(Arena::open(), limit)
    }

    /// A pool at an arena, which counts it.
    pub(crate) fn at(arena: NonNull<Arena>, limit: usize) -> Self {
        Self {
            arena,
            limit: limit.min(u32::MAX as usize),
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
        let buffer = self.buffer(headroom, len)?;
        // SAFETY: just taken with this size.
        Some(unsafe { Packet::fresh(buffer, headroom, len) })
    }

    #[inline]
    fn buffer(&mut self, headroom: usize, len: usize) -> Option<NonNull<Header>> {
        let fits = self.in_use() < self.limit && len <= MAX_PACKET && headroom <= MAX_PACKET;
        // SAFETY: the arena lives as long as the pool, and no reference to it is held.
        let buffer = (fits.then(|| unsafe { Arena::take(self.arena, headroom + len) })).flatten();
        self.refused += u64::from(buffer.is_none());
        buffer
    }

    /// A packet with this content.
    #[inline]
    pub fn packet_from(&mut self, data: &[u8]) -> Option<Packet> {
        let mut packet = self.alloc(data.len())?;
        packet.fill(data);
        Some(packet)
    }

    /// A copy of `packet` with its annotations and the headers in front of the data. Both have one buffer until
    /// either is changed.
    #[inline]
    pub fn duplicate(&mut self, packet: &mut Packet) -> Option<Packet> {
        let copy = match self.reserve_buffers(packet.arena_ref(), 1) {
            None => self.copy(packet),
            Some(room) => (room > 0).then(|| {
                packet.add_refs(1);
                // SAFETY: a buffer is reserved for it, and it was counted just now.
                unsafe { packet.clone_ref() }
            }),
        };
        self.refused += u64::from(copy.is_none());
        copy
    }

    /// Appends a copy of each packet for which the pool has room.
    pub fn duplicate_all(&mut self, packets: &mut Batch, into: &mut Batch) {
        let enough = into.len() + packets.len();
        let mut packets = packets.packets_mut();
        while !packets.is_empty() {
            let done = match self.reserve_buffers(packets[0].arena_ref(), packets.len()) {
                Some(0) => break,
                Some(room) => self.share_alike(&mut packets[..room], into),
                None => {
                    into.extend(self.copy(&packets[0]));
                    1
                }
            };
            packets = &mut packets[done..];
        }
        self.refused += (enough - into.len()) as u64;
    }

    /// Appends copies of the first packets that are of one arena and class, and for which all buffers are reserved;
    /// returns how many.
    #[inline]
    fn share_alike(&self, packets: &mut [Packet], into: &mut Batch) -> usize {
        let (arena_ref, mut done) = (packets[0].arena_ref(), 0);
        for packet in packets.iter_mut() {
            if packet.arena_ref() != arena_ref {
                break;
            }
            packet.add_refs(1);
            done += 1;
        }
        // SAFETY: reserved by our caller, and counted just now; no reference to the arena is held.
        unsafe {
            into.extend_copied(&packets[..done]);
            Arena::release_reserved(self.arena, arena_ref.list(), packets.len() - done);
        }
        done
    }

    /// Appends `n` copies of a packet, or as many as the pool has room for.
    pub fn repeat(&mut self, packet: &mut Packet, n: usize, into: &mut Batch) {
        let enough = into.len() + n;
        match self.reserve_buffers(packet.arena_ref(), n) {
            Some(room) => {
                packet.add_refs(room);
                // SAFETY: a buffer is reserved for it, and it was counted just now.
                unsafe { into.extend_repeated(packet, room) };
            }
            None => into.extend((0..n).map_while(|_| self.copy(packet))),
        }
        self.refused += (enough - into.len()) as u64;
    }

    /// For how many more packets, at most `n`, that share buffers of this arena and class there is room; they count as
    /// in use. `None` if such buffers are not shared.
    #[inline]
    fn reserve_buffers(&mut self, arena_ref: ArenaRef, n: usize) -> Option<usize> {
        let room = n.min(self.limit.saturating_sub(self.in_use()));
        let (arena, class) = arena_ref.parts();
        // SAFETY: the arena lives as long as the pool, and no reference to it is held.
        (arena == self.arena).then(|| unsafe { Arena::reserve_buffers(arena, class, room) })?
    }

    /// A copy with a buffer of its own.
    pub(crate) fn copy(&mut self, packet: &Packet) -> Option<Packet> {
        let buffer = self.buffer(packet.headroom(), packet.len())?;
        // SAFETY: just taken with room for the same headroom and data.
        Some(unsafe { packet.copy_in(buffer, 0) })
    }

    /// How many packets are out at the moment.
    #[inline]
    pub fn in_use(&self) -> usize {
        // SAFETY: the arena lives as long as the pool, and no other reference to it is held.
        unsafe { self.arena.as_ref() }.in_use()
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
        // SAFETY: it counts this pool, which is closed once; no reference to it is held.
        unsafe { Arena::close(self.arena) };
    }
}

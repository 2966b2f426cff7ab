// SPDX-License-Identifier: Apache-2.0
//! The buffers of a network device, which its peer writes and reads too.
//!
//! Frames that came in are packets where they lie, and go out from there.
//!
//! The peer is trusted for the bytes of these buffers and for nothing else. The owner and
//! the length of a buffer lie in pages that the peer does not see. No value in the line before the bytes does harm.
use alloc::boxed::Box;
use core::any::Any;
use core::ptr::NonNull;

use crate::arena::{Arena, ArenaRef, DeviceRegion, REGION, SIZES};
use crate::buffer::{self, BLOCK, Header};
use crate::packet::{HEADROOM, Packet};

/// Where a packet's data lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegionOffset {
    /// The number of the region; 0 for the one that gives the offset.
    pub number: u16,
    /// Bytes from the start of that region.
    pub offset: usize,
}

/// The buffers of a device. Their memory lives as long as itself or one of its packets.
pub struct Region {
    arena: NonNull<Arena>,
}

impl Region {
    /// Bytes of a block, and the unit of its address.
    pub const BLOCK: usize = BLOCK;
    /// Bytes at the beginning of a block that the peer does not see; behind them lies a chunk of the region.
    pub const PRIVATE: usize = 4096;
    /// Bytes of a chunk.
    pub const CHUNK: usize = BLOCK - Self::PRIVATE;
    /// Bytes from one buffer to the next.
    pub const STRIDE: usize = buffer::size(SIZES[1]);
    /// Buffers in a chunk.
    pub const PER_CHUNK: usize = Self::CHUNK / Self::STRIDE;
    /// Bytes from the beginning of a buffer to a fresh packet's data.
    pub const BEFORE_DATA: usize = buffer::DATA_OFFSET + HEADROOM;
    /// Bytes of a fresh packet.
    pub const ROOM: usize = 2048;

    /// The buffers in `blocks` blocks from `first` on. In the chunk of block `n`, the first begins `color(n)` bytes
    /// after the start.
    ///
    /// # Safety
    /// `first` is a multiple of [`Region::BLOCK`]. All blocks from there are initialized, and may be read and written
    /// until `owner` is dropped. No other code of this domain uses them.
    pub unsafe fn new(
        first: NonNull<u8>,
        blocks: usize,
        color: fn(usize) -> usize,
        owner: Box<dyn Any>,
    ) -> Self {
        let arena = Arena::open();
        let mut free = alloc::vec::Vec::with_capacity(blocks * Self::PER_CHUNK);
        for n in 0..blocks {
            // SAFETY: the n-th block, as the caller says.
            unsafe {
                let block = first.add(n * BLOCK);
                buffer::begin_block(block, ArenaRef::new(arena, REGION), SIZES[1]);
                let at = block.add(Self::PRIVATE + color(n) % (Self::CHUNK % Self::STRIDE + 1));
                free.extend(
                    (0..Self::PER_CHUNK).map(|n| at.add(n * Self::STRIDE).cast::<Header>()),
                );
            }
        }
        free.reverse(); // the first one is taken first
        // SAFETY: opened just now; the reference ends with this block.
        unsafe {
            let arena = &mut *arena.as_ptr();
            arena.free_lists[REGION].free = free;
            arena.region = Some(DeviceRegion {
                first,
                number: 0,
                start: 0,
                owner,
            });
        }
        Self { arena }
    }

    /// Sets its number among the regions that devices send from; 0 if only its own device does. The first chunk begins
    /// at `start` in the region.
    #[must_use]
    pub fn numbered(self, number: u16, start: usize) -> Self {
        self.set_place(number, start);
        self
    }

    fn set_place(&self, number: u16, start: usize) {
        // SAFETY: the arena lives as long as the region; the reference ends with this statement.
        if let Some(memory) = unsafe { &mut (*self.arena.as_ptr()).region } {
            (memory.number, memory.start) = (number, start);
        }
    }

    /// Where a packet's data lies, if it lies in this region, or in another one and both have a number.
    #[inline]
    pub fn offset_of(&self, packet: &Packet) -> Option<RegionOffset> {
        let arena_ref = packet.arena_ref();
        if !arena_ref.is_region() {
            return None;
        }
        // SAFETY: the arenas of a packet and of a region are alive, and no other reference to them is held.
        let (own, memory) = unsafe { (self.arena.as_ref(), arena_ref.arena().as_ref()) };
        let (own, memory) = (own.region.as_ref()?, memory.region.as_ref()?);
        let is_own = arena_ref.arena() == self.arena;
        if !is_own && (own.number == 0 || memory.number == 0) {
            return None;
        }
        let from_first = packet.data().as_ptr().addr() - memory.first.addr().get();
        let (block, at) = (from_first / BLOCK, from_first % BLOCK);
        Some(RegionOffset {
            number: if is_own { 0 } else { memory.number },
            offset: memory.start + block * Self::CHUNK + (at - Self::PRIVATE),
        })
    }

    /// A packet of [`Region::ROOM`] bytes of unspecified content; `None` when all buffers are in use.
    #[inline]
    pub fn take(&mut self) -> Option<Packet> {
        // SAFETY: the arena lives as long as the region, and no reference to it is held.
        let buffer = unsafe { Arena::take_of_region(self.arena) }?;
        // SAFETY: just taken; its capacity is this much and more.
        Some(unsafe { Packet::fresh(buffer, HEADROOM, Self::ROOM) })
    }

    /// How many buffers are free.
    #[inline]
    pub fn free(&self) -> usize {
        // SAFETY: the arena lives as long as the region, and no other reference to it is held.
        unsafe { self.arena.as_ref() }.free_lists[REGION].free.len()
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // The peer has no region of this number any more, so packets that are left are copied.
        self.set_place(0, 0);
        // SAFETY: opened by `new`, closed once, and no reference to it is held.
        unsafe { Arena::close(self.arena) };
    }
}

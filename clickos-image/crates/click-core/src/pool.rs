// SPDX-License-Identifier: Apache-2.0
//! The packet buffers of a router: bounded in number, reused, never shared between threads.
use alloc::boxed::Box;
use alloc::rc::Rc;
use alloc::vec;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};

use crate::packet::{BUFFER_BYTES, Buffer, HEADROOM, MAX_PACKET, Packet};

/// Where dropped packets leave their buffers.
pub(crate) struct Home {
    #[expect(
        clippy::vec_box,
        reason = "a packet is one pointer; the boxes are reused, not their content"
    )]
    free: RefCell<Vec<Box<Buffer>>>,
    in_use: Cell<usize>,
}

impl Home {
    pub(crate) fn take_back(&self, buffer: Box<Buffer>) {
        self.in_use.set(self.in_use.get() - 1);
        if buffer.bytes.len() == BUFFER_BYTES {
            self.free.borrow_mut().push(buffer);
        }
    }
}

/// Zeroed bytes for one buffer.
pub(crate) fn new_buffer(size: usize) -> Box<[u8]> {
    vec![0; size].into_boxed_slice()
}

/// Hands out packets, at most `limit` at a time.
pub struct PacketPool {
    home: Rc<Home>,
    limit: usize,
    refused: u64,
}

impl PacketPool {
    /// A pool of at most `limit` packets; buffers are made when first needed.
    pub fn new(limit: usize) -> Self {
        let home = Home {
            free: RefCell::new(Vec::new()),
            in_use: Cell::new(0),
        };
        Self {
            home: Rc::new(home),
            limit,
            refused: 0,
        }
    }

    /// A packet of `len` bytes of unspecified content; `None` when the pool is exhausted or `len` too large.
    pub fn alloc(&mut self, len: usize) -> Option<Packet> {
        self.alloc_with(HEADROOM, len)
    }

    /// Like [`PacketPool::alloc`] with `headroom` bytes free in front.
    pub fn alloc_with(&mut self, headroom: usize, len: usize) -> Option<Packet> {
        if self.home.in_use.get() >= self.limit || len > MAX_PACKET || headroom > MAX_PACKET {
            self.refused += 1;
            return None;
        }
        self.home.in_use.set(self.home.in_use.get() + 1);
        Some(Packet::fresh(self.buffer(headroom + len), headroom, len))
    }

    fn buffer(&mut self, size: usize) -> Box<Buffer> {
        let reused = if size <= BUFFER_BYTES {
            self.home.free.borrow_mut().pop()
        } else {
            None
        };
        reused.unwrap_or_else(|| {
            Box::new(Buffer::new(
                new_buffer(size.max(BUFFER_BYTES)),
                Rc::clone(&self.home),
            ))
        })
    }

    /// A packet with this content.
    pub fn packet_from(&mut self, data: &[u8]) -> Option<Packet> {
        let mut packet = self.alloc(data.len())?;
        packet.data_mut().copy_from_slice(data);
        Some(packet)
    }

    /// A copy of `packet` with its annotations, headers in front of the data included.
    pub fn duplicate(&mut self, packet: &Packet) -> Option<Packet> {
        let stripped = packet.headroom().min(HEADROOM);
        let mut copy = self.alloc_with(packet.headroom(), packet.len())?;
        copy.data_mut().copy_from_slice(packet.data());
        copy.copy_front(packet, stripped);
        copy.copy_meta(packet);
        Some(copy)
    }

    /// How many packets are out at the moment.
    pub fn in_use(&self) -> usize {
        self.home.in_use.get()
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

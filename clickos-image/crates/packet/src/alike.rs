// SPDX-License-Identifier: Apache-2.0
//! Which packets go home together.
use core::ptr::NonNull;

use crate::buffer::{Block, block_of};
use crate::home::Kind;
use crate::packet::Packet;

/// Tells which packets' buffers belong where a first one's does, mostly without a look at their blocks.
pub struct Alike {
    block: NonNull<Block>,
    kind: Kind,
}

impl Alike {
    /// Like this one's.
    #[inline]
    pub fn new(packet: &Packet) -> Self {
        Self {
            block: block_of(packet.header),
            kind: packet.kind(),
        }
    }

    /// Whether another one's does.
    #[inline]
    pub fn is(&mut self, packet: &Packet) -> bool {
        let block = block_of(packet.header);
        if block != self.block && packet.kind() != self.kind {
            return false;
        }
        self.block = block;
        true
    }
}

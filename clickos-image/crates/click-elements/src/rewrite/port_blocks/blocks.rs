// SPDX-License-Identifier: Apache-2.0
//! The ports of subscribers, and which flow has each.
use click_core::memory::{RESERVE, has_room};
use click_core::{Limits, listing};

use super::layout::Layout;
use crate::flows::FlowId;
use crate::prelude::*;
use crate::rewrite::mapper::Map;
use crate::rewrite::pattern::{Draw, Outputs};

/// Ports that are looked at for one flow, so that it takes bounded time where almost all are taken.
const TRIES: u32 = 64;
/// The rewriter's outputs for flows and answers.
const OUTPUTS: Outputs = [0, 1];

/// The last flow that had a port: its destination.
#[derive(Clone, Copy)]
struct Slot {
    destination: Ipv4Addr,
    dport: u16,
}

const FREE: Slot = Slot {
    destination: Ipv4Addr::UNSPECIFIED,
    dport: 0,
};

/// The ports of a subscriber for one protocol.
struct Block {
    /// The subscriber's number and the rewriter's map.
    key: (u32, u16),
    slots: Vec<Slot>,
    begun: u64,
    refused: u64,
}

impl Block {
    /// A free port, counted from the block's first one.
    fn find(
        &self,
        id: FlowId,
        first: u16,
        draw: Draw<'_>,
        taken: &dyn Fn(&FlowId) -> bool,
    ) -> Option<u16> {
        let count = self.slots.len() as u32;
        let start = draw(count - 1);
        let free = |n: &u16| {
            let slot = self.slots[usize::from(*n)];
            let had = FlowId {
                sport: first + n,
                destination: slot.destination,
                dport: slot.dport,
                ..id
            };
            let fresh = FlowId {
                sport: first + n,
                ..id
            };
            (slot.destination.is_unspecified() || !taken(&had)) && !taken(&fresh)
        };
        let from_start = (0..count.min(TRIES)).map(|n| ((start + n) % count) as u16);
        // even ports stay even, and odd ones odd (RFC 4787, REQ-4)
        let is_alike = |n: &u16| first.wrapping_add(*n) & 1 == id.sport & 1 && free(n);
        let alike = from_start.clone().find(is_alike);
        alike.or_else(|| from_start.clone().find(free))
    }
}

/// The blocks of all subscribers that had flows, sorted.
pub struct Blocks {
    pub layout: Layout,
    blocks: Vec<Block>,
}

impl Blocks {
    pub fn new(layout: Layout) -> Self {
        Self {
            layout,
            blocks: Vec::new(),
        }
    }

    /// The block with this key, which may be new; `None` if the memory takes no more.
    fn block(&mut self, key: (u32, u16)) -> Option<&mut Block> {
        let n = match self.blocks.binary_search_by(|b| b.key.cmp(&key)) {
            Ok(n) => n,
            Err(n) => {
                let size = self.layout.block as usize;
                let list = (self.blocks.len() + 1) * 2 * size_of::<Block>();
                if !has_room(RESERVE + list + size * size_of::<Slot>()) {
                    return None;
                }
                let block = Block {
                    key,
                    slots: vec![FREE; size],
                    begun: 0,
                    refused: 0,
                };
                self.blocks.insert(n, block);
                n
            }
        };
        self.blocks.get_mut(n)
    }

    /// Takes the blocks over, unless they lie elsewhere.
    pub fn adopt(&mut self, old: &mut Self) {
        if self.layout == old.layout {
            self.blocks = core::mem::take(&mut old.blocks);
        }
    }

    pub fn table(&self, limits: &Limits) -> String {
        let same = |a: &Block, b: &Block| a.key.0 == b.key.0;
        let line = |blocks: &[Block]| {
            let n = blocks[0].key.0;
            let (public, first) = self.layout.place(n);
            let last = u32::from(first) + self.layout.block - 1;
            let begun: u64 = blocks.iter().map(|b| b.begun).sum();
            let refused: u64 = blocks.iter().map(|b| b.refused).sum();
            let subscriber = self.layout.subscriber_address(n);
            format!("{subscriber} {public} {first}-{last} {begun} {refused}\n")
        };
        listing(limits, self.blocks.chunk_by(same).map(line))
    }
}

impl Map for Blocks {
    fn rewrite(
        &mut self,
        id: FlowId,
        map: u16,
        draw: Draw<'_>,
        taken: &dyn Fn(&FlowId) -> bool,
    ) -> Option<(FlowId, Outputs)> {
        let subscriber = self.layout.subscriber(id.source)?;
        let (source, first) = self.layout.place(subscriber);
        let block = self.block((subscriber, map))?;
        let found = block.find(FlowId { source, ..id }, first, draw, taken);
        block.refused += u64::from(found.is_none());
        let n = found?;
        block.begun += 1;
        block.slots[usize::from(n)] = Slot {
            destination: id.destination,
            dport: id.dport,
        };
        let sport = first + n;
        Some((
            FlowId {
                source,
                sport,
                ..id
            },
            OUTPUTS,
        ))
    }

    fn took_over(&mut self, id: FlowId, new: FlowId, map: u16) {
        let Some(subscriber) = self.layout.subscriber(id.source) else {
            return;
        };
        let (source, first) = self.layout.place(subscriber);
        let n = new.sport.wrapping_sub(first);
        if new.source == source && u32::from(n) < self.layout.block {
            if let Some(block) = self.block((subscriber, map)) {
                block.slots[usize::from(n)] = Slot {
                    destination: id.destination,
                    dport: id.dport,
                };
            }
        }
    }

    fn beyond(&self, outputs: usize) -> Option<u16> {
        OUTPUTS
            .into_iter()
            .find(|port| usize::from(*port) >= outputs)
    }
}

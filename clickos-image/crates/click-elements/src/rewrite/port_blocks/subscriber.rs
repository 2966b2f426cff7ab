// SPDX-License-Identifier: Apache-2.0
//! What is known of a subscriber, and how many flows each of its ports has.
use click_core::memory::has_room;

use crate::flows::FlowId;
use crate::prelude::*;
use crate::rewrite::pattern::Draw;
use crate::syslog::MESSAGE_ROOM;

/// Ports without a flow of the subscriber that a search tries; other patterns may have given them away.
const TRIES: usize = 64;

/// The ports of a subscriber for one protocol.
#[derive(Clone)]
struct Block {
    /// The rewriter's map.
    map: u16,
    /// Flows of each port.
    ports: Box<[u32]>,
    /// Ports with flows.
    used: u32,
}

/// A subscriber with flows.
#[derive(Clone, Default)]
pub struct Subscriber {
    blocks: Vec<Block>,
    /// Flows with its ports, and those of them that it opened.
    pub flows: u32,
    pub opened: u32,
    pub begun: u64,
    pub refused: u64,
    /// The era of the log that has its block as allocated, or 0.
    pub logged: u32,
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
        let count = self.ports.len();
        if self.used as usize == count {
            return None;
        }
        let start = draw(count as u32 - 1) as usize;
        let is_free = |n: &usize| self.ports[*n] == 0;
        let from_start = (start..count).chain(0..start).filter(is_free);
        let sport = |n: usize| first + n as u16;
        let is_taken = |n: usize| {
            taken(&FlowId {
                sport: sport(n),
                ..id
            })
        };
        // even ports stay even, and odd ones odd (RFC 4787, REQ-4)
        let mut alike = from_start
            .clone()
            .filter(|n| sport(*n) & 1 == id.sport & 1)
            .take(TRIES);
        let found = alike.find(|n| !is_taken(*n));
        let found = found.or_else(|| from_start.take(TRIES).find(|n| !is_taken(*n)));
        found.map(|n| n as u16)
    }
}

impl Subscriber {
    /// The block of a map, which may be new; `None` if the memory takes no more.
    fn block(&mut self, map: u16, size: u32) -> Option<&mut Block> {
        let n = match self.blocks.iter().position(|block| block.map == map) {
            Some(n) => n,
            None => {
                let size = size as usize;
                if !has_room(MESSAGE_ROOM + size * size_of::<u32>()) {
                    return None;
                }
                self.blocks.push(Block {
                    map,
                    ports: vec![0; size].into(),
                    used: 0,
                });
                self.blocks.len() - 1
            }
        };
        self.blocks.get_mut(n)
    }

    /// A free port of a block of `size`, counted from `first`.
    pub fn find(
        &mut self,
        (map, size): (u16, u32),
        id: FlowId,
        first: u16,
        draw: Draw<'_>,
        taken: &dyn Fn(&FlowId) -> bool,
    ) -> Option<u16> {
        self.block(map, size)?.find(id, first, draw, taken)
    }

    /// Counts a flow of a port; `None` if the memory takes no more.
    pub fn take(&mut self, (map, size): (u16, u32), port: u32) -> Option<()> {
        let block = self.block(map, size)?;
        let flows = &mut block.ports[port as usize];
        block.used += u32::from(*flows == 0);
        *flows += 1;
        Some(())
    }

    /// Counts a flow of a port no longer.
    pub fn give(&mut self, map: u16, port: u32) {
        let found = self.blocks.iter_mut().find(|block| block.map == map);
        if let Some(block) = found {
            let flows = &mut block.ports[port as usize];
            block.used -= u32::from(*flows == 1);
            *flows = flows.saturating_sub(1);
        }
    }

    /// Gives the memory of blocks back that have no flow.
    pub fn trim(&mut self) {
        self.blocks.retain(|block| block.used > 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(subscriber: &mut Subscriber, sport: u16, start: u32) -> Option<u16> {
        let id = FlowId {
            sport,
            ..FlowId::NONE
        };
        subscriber.find((0, 300), id, 1000, &mut |_| start, &|_| false)
    }

    #[test]
    fn the_last_free_port_of_a_block_is_found() {
        let mut subscriber = Subscriber::default();
        for port in (0..300).filter(|port| *port != 250) {
            subscriber.take((0, 300), port).unwrap();
        }
        assert_eq!(find(&mut subscriber, 7, 251), Some(250));
        subscriber.take((0, 300), 250).unwrap();
        assert_eq!(find(&mut subscriber, 7, 251), None);
        subscriber.give(0, 251);
        assert_eq!(find(&mut subscriber, 8, 252), Some(251));
    }

    #[test]
    fn a_port_is_free_once_its_last_flow_has_ended() {
        let mut subscriber = Subscriber::default();
        (0..300).for_each(|port| subscriber.take((0, 300), port).unwrap());
        subscriber.take((0, 300), 9).unwrap();
        subscriber.give(0, 9);
        assert_eq!(find(&mut subscriber, 9, 0), None);
        subscriber.give(0, 9);
        assert_eq!(find(&mut subscriber, 9, 0), Some(9));
    }
}

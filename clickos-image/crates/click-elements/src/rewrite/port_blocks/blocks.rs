// SPDX-License-Identifier: Apache-2.0
//! The ports of subscribers, and which flow has each.
use alloc::rc::Rc;
use core::cell::RefCell;
use core::fmt::{self, Display};

use click_core::memory::{RESERVE, has_room};
use click_core::{Limits, listing};

use super::layout::Layout;
use crate::flows::{FlowId, FlowTable};
use crate::prelude::*;
use crate::rewrite::mapper::Map;
use crate::rewrite::pattern::{Draw, Outputs};
use crate::syslog::{Severity, Shared};

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
    /// Subscribers with flows, sorted; none without a log.
    active: Vec<u32>,
    /// The flows of the rewriters that ask.
    tables: Vec<Rc<RefCell<FlowTable>>>,
    pub log: Option<Shared>,
}

/// What a block of ports is about, as a message.
struct Event {
    word: &'static str,
    subscriber: Ipv4Addr,
    public: Ipv4Addr,
    ports: (u16, u32),
}

impl Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (word, subscriber, public, (first, last)) =
            (self.word, self.subscriber, self.public, self.ports);
        write!(
            f,
            "{{\"event\":\"{word}\",\"subscriber\":\"{subscriber}\",\"public\":\"{public}\",\"first_port\":{first},\"last_port\":{last}}}"
        )
    }
}

impl Blocks {
    pub fn new(layout: Layout) -> Self {
        Self {
            layout,
            blocks: Vec::new(),
            active: Vec::new(),
            tables: Vec::new(),
            log: None,
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

    /// Notes that a subscriber has a flow; writes it down if it is the first one.
    fn begin(&mut self, subscriber: u32) {
        if self.log.is_none() {
            return;
        }
        if let Err(at) = self.active.binary_search(&subscriber) {
            self.active.insert(at, subscriber);
            self.write("allocated", subscriber);
        }
    }

    fn write(&self, word: &'static str, subscriber: u32) {
        let Some(log) = &self.log else {
            return;
        };
        let (public, first) = self.layout.place(subscriber);
        let event = Event {
            word,
            subscriber: self.layout.subscriber_address(subscriber),
            public,
            ports: (first, u32::from(first) + self.layout.block - 1),
        };
        let mut log = log.borrow_mut();
        log.write(None, Severity::Info, "block", &event);
    }

    /// Writes down the subscribers whose last flow has ended.
    pub fn sweep(&mut self) {
        let before = core::mem::take(&mut self.active);
        if before.is_empty() {
            return;
        }
        let mut has_flows = vec![false; before.len()];
        for table in &self.tables {
            let table = table.borrow();
            for id in table.iter().flat_map(|(_, flow)| flow.ids) {
                let subscriber = self.layout.subscriber(id.source);
                let place = subscriber.and_then(|n| before.binary_search(&n).ok());
                if let Some(place) = place {
                    has_flows[place] = true;
                }
            }
        }
        for (subscriber, has_flows) in before.into_iter().zip(has_flows) {
            match has_flows {
                true => self.active.push(subscriber),
                false => self.write("freed", subscriber),
            }
        }
    }

    /// Takes the blocks over, unless they lie elsewhere.
    pub fn adopt(&mut self, old: &mut Self) {
        if self.layout == old.layout {
            self.blocks = core::mem::take(&mut old.blocks);
            self.active = core::mem::take(&mut old.active);
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
        self.begin(subscriber);
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

    fn serves(&mut self, flows: &Rc<RefCell<FlowTable>>) {
        if !self.tables.iter().any(|known| Rc::ptr_eq(known, flows)) {
            self.tables.push(Rc::clone(flows));
        }
    }

    fn beyond(&self, outputs: usize) -> Option<u16> {
        OUTPUTS
            .into_iter()
            .find(|port| usize::from(*port) >= outputs)
    }
}

// SPDX-License-Identifier: Apache-2.0
//! Flows in numbered slots, found by the ends of either direction, and ordered by silence in lists of equal time-outs.
use super::ends::Ends;
use crate::flows::{At, Chunks, Index, ListId, Order};
use crate::prelude::*;

/// A flow that slots can hold.
pub trait Member: Clone {
    /// Its ends, as its first packet has them.
    fn ends(&self) -> Ends;
    /// Flows of different zones are different, also with equal ends.
    fn zone(&self) -> u32 {
        0
    }
    /// The time of its last packet.
    fn heard_ns(&self) -> u64;
    /// The list that it is in. Only [`Slots`] changes it.
    fn list(&self) -> ListId;
    fn set_list(&mut self, list: ListId);
}

/// Flows of one kind, in `LISTS` lists.
pub struct Slots<F, const LISTS: usize> {
    flows: Chunks<Option<F>>,
    /// Slots that have had a flow, and those of them that are free.
    used: u32,
    free: Vec<u32>,
    index: Index,
    order: Order,
    lists: [ListId; LISTS],
    keys: [u64; 4],
}

impl<F: Member, const LISTS: usize> Slots<F, LISTS> {
    /// No flows. `timeouts_ns` are those of the lists.
    pub fn new(timeouts_ns: [u64; LISTS]) -> Self {
        let mut order = Order::new();
        let list = |timeout_ns| order.add_list(timeout_ns, false).unwrap_or(ListId::NONE);
        Self {
            lists: timeouts_ns.map(list),
            flows: Chunks::new(),
            used: 0,
            free: Vec::new(),
            index: Index::new(),
            order,
            keys: [0; 4],
        }
    }

    /// Sets the numbers that senders do not know, before there are flows.
    pub fn set_keys(&mut self, keys: [u64; 4]) {
        self.keys = keys;
    }

    /// How long flows of a list are kept.
    pub fn timeout_ns(&self, list: usize) -> u64 {
        self.order.timeout_ns(self.lists[list])
    }

    /// Changes it, also for the flows in the list.
    pub fn set_timeout(&mut self, list: usize, timeout_ns: u64) {
        self.order.set_timeout(self.lists[list], timeout_ns);
    }

    /// The number of flows.
    pub fn len(&self) -> usize {
        self.used as usize - self.free.len()
    }

    /// Slots that have had a flow.
    pub fn used(&self) -> u32 {
        self.used
    }

    pub fn get(&self, slot: u32) -> Option<&F> {
        self.flows[slot].as_ref()
    }

    pub fn get_mut(&mut self, slot: u32) -> Option<&mut F> {
        self.flows[slot].as_mut()
    }

    /// All flows, in no order.
    pub fn iter(&self) -> impl Iterator<Item = &F> {
        (0..self.used).filter_map(|slot| self.get(slot))
    }

    /// The flows of a list, the one that was silent longest first.
    pub fn by_silence(&self, list: usize) -> impl Iterator<Item = &F> {
        let slots = self.order.members(self.lists[list]);
        slots.filter_map(|slot| self.get(slot))
    }

    /// The flow of a list that was silent longest.
    pub fn first(&self, list: usize) -> Option<u32> {
        self.order.first(self.lists[list])
    }

    /// The same, if its time is over.
    pub fn first_late(&self, list: usize, now_ns: u64) -> Option<u32> {
        self.first(list).filter(|slot| self.is_late(*slot, now_ns))
    }

    /// True if the time of a flow is over.
    pub fn is_late(&self, slot: u32, now_ns: u64) -> bool {
        let Some(flow) = self.get(slot) else {
            return true;
        };
        now_ns.saturating_sub(flow.heard_ns()) >= self.order.timeout_ns(flow.list())
    }

    /// The slot of a flow, and whether these are the ends of its answers.
    #[inline]
    pub fn find(&self, ends: &Ends, zone: u32) -> Option<At> {
        self.index.find(hash(ends, zone, &self.keys), |at| {
            let found = named(&self.flows, at);
            found.is_some_and(|(found, known)| found == *ends && known == zone)
        })
    }

    /// Adds a flow that is not there to a list; `None` if the memory takes no more.
    pub fn insert(&mut self, mut flow: F, list: usize) -> Option<u32> {
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None => {
                self.flows.reach(self.used, &None)?;
                self.order.reach(self.used)?;
                self.used += 1;
                self.used - 1
            }
        };
        flow.set_list(self.lists[list]);
        self.order.append(self.lists[list], slot);
        self.flows[slot] = Some(flow);
        let hash = |at| hash_at(&self.flows, &self.keys, at);
        for at in [At::new(slot, false), At::new(slot, true)] {
            self.index.insert(hash(at), at, &hash);
        }
        Some(slot)
    }

    /// Puts a flow that had a packet after the others of a list; returns whether it was in another list.
    pub fn touch(&mut self, slot: u32, list: usize) -> bool {
        let list = self.lists[list];
        let Some(flow) = self.flows[slot].as_mut() else {
            return false;
        };
        let old = flow.list();
        flow.set_list(list);
        if old != list || !self.order.is_last(list, slot) {
            self.order.unlink(old, slot);
            self.order.append(list, slot);
        }
        old != list
    }

    /// Removes the flow in a slot, if there is one.
    pub fn remove(&mut self, slot: u32) -> Option<F> {
        let list = self.get(slot)?.list();
        self.order.unlink(list, slot);
        let hash = |at| hash_at(&self.flows, &self.keys, at);
        for at in [At::new(slot, false), At::new(slot, true)] {
            self.index.remove(hash(at), at, &hash);
        }
        self.free.push(slot);
        self.flows[slot].take()
    }
}

/// The hash of a flow's ends in a zone.
#[inline]
fn hash(ends: &Ends, zone: u32, keys: &[u64; 4]) -> u64 {
    let [a, b, c, d] = *keys;
    ends.hash(&[a ^ u64::from(zone), b, c, d])
}

/// The ends of a flow in one direction, and its zone.
fn named<F: Member>(flows: &Chunks<Option<F>>, at: At) -> Option<(Ends, u32)> {
    let flow = flows[at.slot()].as_ref()?;
    let ends = match at.is_reply() {
        true => flow.ends().reverse(),
        false => flow.ends(),
    };
    Some((ends, flow.zone()))
}

fn hash_at<F: Member>(flows: &Chunks<Option<F>>, keys: &[u64; 4], at: At) -> u64 {
    named(flows, at).map_or(0, |(ends, zone)| hash(&ends, zone, keys))
}

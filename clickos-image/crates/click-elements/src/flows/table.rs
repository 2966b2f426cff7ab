// SPDX-License-Identifier: Apache-2.0
//! The table of flows.
use alloc::collections::BTreeMap;
use alloc::rc::Rc;

use super::changes::Changes;
use super::chunks::Chunks;
use super::delta::Delta;
use super::endpoints::{Endpoint, Endpoints};
use super::freed::Freed;
use super::id::FlowId;
use super::index::{At, Index};
use super::keys::Keys;
use super::order::{ListId, Order, Times};
use super::sequence::Shift;
use super::watch::Watch;
use crate::prelude::*;

/// The most flows a table can hold.
pub const MAX_FLOWS: usize = 3 << 22;
const _: () = assert!(MAX_FLOWS <= At::MAX_SLOTS);
/// Flows whose guarantee has run out that are looked at for one new flow, so that it takes bounded time.
const SHIFTS: usize = 64;
/// The cost of keeping the order: most moves of a flow per flow in the table.
const SLACK_NS_PER_FLOW: u64 = 1_000;

/// One flow: one line of the cache.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub struct Flow {
    /// How its packets come in, and how their answers do.
    pub ids: [FlowId; 2],
    touched_ns: u64,
    placed_ns: u64,
    /// The change to checksums of headers that contain its addresses.
    pub ip: Delta,
    /// The change to checksums of headers that contain its addresses and ports.
    pub transport: Delta,
    /// The owner: equal addresses and ports are different flows in different maps.
    pub map: u16,
    /// The place in the owner's list of inputs.
    pub owner: u16,
    /// Where its packets leave, and where their answers do.
    pub outputs: [u16; 2],
    list: ListId,
    rest: ListId,
    /// A number the owner gave it.
    pub number: u32,
    /// The protocol, or 0 for any.
    pub protocol: u8,
    /// Notes of the owner.
    pub flags: u8,
    /// An annotation of its first packet, for answers.
    pub reply_anno: u8,
    /// Another guest's, without a packet here.
    pub is_copy: bool,
}

impl Flow {
    /// A flow of a map.
    pub const fn new(map: u16, ids: [FlowId; 2]) -> Self {
        Self {
            ids,
            touched_ns: 0,
            placed_ns: 0,
            ip: Delta::NONE,
            transport: Delta::NONE,
            map,
            owner: 0,
            outputs: [0; 2],
            list: ListId::NONE,
            rest: ListId::NONE,
            number: 0,
            protocol: 0,
            flags: 0,
            reply_anno: 0,
            is_copy: false,
        }
    }

    /// The key of its packets after the rewrite.
    pub fn rewritten(&self, reply: bool) -> FlowId {
        self.ids[usize::from(!reply)].reverse()
    }
}

/// Flows, at most as many as its capacity.
pub struct FlowTable {
    index: Index,
    flows: Chunks<Flow>,
    order: Order,
    /// Slots that were used once, and those of them that are free.
    used: u32,
    free: Vec<u32>,
    capacity: usize,
    keys: Keys,
    maps: u16,
    /// Flows by owner.
    counts: Vec<u32>,
    /// How sequence numbers of some flows have moved, in both directions.
    shifts: BTreeMap<u32, [Shift; 2]>,
    /// The endpoints of flows whose mapping does not depend on the other side.
    endpoints: Option<Box<Endpoints>>,
    /// The flows that changed, once someone has asked for them.
    changes: Option<Box<Changes>>,
    /// The flows that ended last, once somebody asked for them.
    freed: Option<Box<Freed>>,
    watchers: Vec<Rc<dyn Watch>>,
}

impl FlowTable {
    /// An empty table; `keys` should be random.
    pub fn new(capacity: usize, keys: Keys) -> Self {
        Self {
            index: Index::new(),
            flows: Chunks::new(),
            order: Order::new(),
            used: 0,
            free: Vec::new(),
            capacity: capacity.min(MAX_FLOWS),
            keys,
            maps: 0,
            counts: Vec::new(),
            shifts: BTreeMap::new(),
            endpoints: None,
            changes: None,
            freed: None,
            watchers: Vec::new(),
        }
    }

    /// From now on, `watcher` counts each flow that begins or ends.
    pub fn watch(&mut self, watcher: Rc<dyn Watch>) {
        let is_it =
            |known: &Rc<dyn Watch>| core::ptr::addr_eq(Rc::as_ptr(known), Rc::as_ptr(&watcher));
        if !self.watchers.iter().any(is_it) {
            self.watchers.push(watcher);
        }
    }

    /// Lets the watchers count a flow; `None` if one of them refuses it.
    fn begins(&self, flow: &Flow) -> Option<()> {
        for (n, watcher) in self.watchers.iter().enumerate() {
            if watcher.began(flow.map, &flow.ids).is_none() {
                self.ends(n, flow);
                return None;
            }
        }
        Some(())
    }

    /// Lets the first `count` watchers count a flow no longer.
    fn ends(&self, count: usize, flow: &Flow) {
        let counting = &self.watchers[..count];
        counting
            .iter()
            .for_each(|watcher| watcher.ended(flow.map, &flow.ids));
    }

    /// From now on, the flows that end are known.
    pub fn track_freed(&mut self) {
        self.freed.get_or_insert_default();
    }

    /// The flows that ended last, if they are known.
    pub fn freed(&self) -> Option<&Freed> {
        self.freed.as_deref()
    }

    /// A list of flows that time out alike; `None` if there are too many lists.
    pub fn add_list(&mut self, timeout_ns: u64, guaranteed: bool) -> Option<ListId> {
        self.order.add_list(timeout_ns, guaranteed)
    }

    /// Changes the time-out of a list.
    pub fn set_timeout(&mut self, list: ListId, timeout_ns: u64) {
        self.order.set_timeout(list, timeout_ns);
    }

    /// Consecutive maps, of which the first is returned; `None` if there are too many.
    pub fn add_maps(&mut self, count: u16) -> Option<u16> {
        let first = self.maps;
        self.maps = first.checked_add(count)?;
        Some(first)
    }

    /// Consecutive owners of flows, of which the first is returned; `None` if there are too many.
    pub fn add_owners(&mut self, count: usize) -> Option<u16> {
        let first = u16::try_from(self.counts.len()).ok()?;
        u16::try_from(self.counts.len() + count).ok()?;
        self.counts.resize(self.counts.len() + count, 0);
        Some(first)
    }

    /// From now on, endpoints of flows of these maps are known.
    pub fn track_endpoints(&mut self, maps: core::ops::Range<u16>) {
        self.endpoints = Some(Box::new(Endpoints::new(self.keys, maps)));
    }

    /// The public address and port of an inside one, if they are tracked.
    pub fn public_of(&self, map: u16, inside: Endpoint) -> Option<Endpoint> {
        self.endpoints.as_ref()?.public_of(map, inside)
    }

    /// The inside address and port of a public one, if they are tracked.
    pub fn inside_of(&self, map: u16, public: Endpoint) -> Option<Endpoint> {
        self.endpoints.as_ref()?.inside_of(map, public)
    }

    /// From now on, addresses that public endpoints have flows with are known, also those of open flows.
    pub fn track_peers(&mut self) {
        let Some(endpoints) = self.endpoints.as_mut() else {
            return;
        };
        if endpoints.track_peers() {
            for slot in 0..self.used {
                let flow = &self.flows[slot];
                if flow.list != ListId::NONE {
                    endpoints.count_peers(flow.map, &flow.ids, true);
                }
            }
        }
    }

    /// True if the inside has flows of a public endpoint with an address, if they are tracked.
    pub fn has_peer(&self, map: u16, public: Endpoint, remote: Ipv4Addr) -> bool {
        let endpoints = self.endpoints.as_ref();
        endpoints.is_some_and(|ends| ends.has_peer(map, public, remote))
    }

    /// How many flows an owner has.
    pub fn count(&self, owner: u16) -> u32 {
        self.counts[usize::from(owner)]
    }

    /// How many flows there are.
    pub fn len(&self) -> usize {
        self.used as usize - self.free.len()
    }

    /// How many flows there can be.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// The hash of a key.
    #[inline]
    pub fn hash(&self, id: &FlowId, map: u16) -> u64 {
        self.keys.hash(id, map)
    }

    /// Brings what a search for these hashes needs near, all of it at a time.
    pub fn warm(&self, hashes: impl Iterator<Item = u64>) {
        let firsts = hashes.filter_map(|hash| self.index.first(hash));
        let touched = firsts.fold(0, |sum, at| sum ^ self.flows[at.slot()].map);
        core::hint::black_box(touched);
    }

    /// The flow and direction of this key.
    #[inline]
    pub fn find(&self, hash: u64, id: &FlowId, map: u16) -> Option<At> {
        self.index.find(hash, |at| {
            let flow = &self.flows[at.slot()];
            flow.ids[usize::from(at.is_reply())] == *id && flow.map == map
        })
    }

    /// Like [`FlowTable::find`] for a key whose hash is not known.
    pub fn find_id(&self, id: &FlowId, map: u16) -> Option<At> {
        self.find(self.hash(id, map), id, map)
    }

    /// A flow.
    pub fn flow(&self, at: At) -> &Flow {
        &self.flows[at.slot()]
    }

    /// A flow, to change what the table does not depend on.
    pub fn flow_mut(&mut self, at: At) -> &mut Flow {
        &mut self.flows[at.slot()]
    }

    /// All flows.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &Flow)> {
        let all = (0..self.used).map(|slot| (slot, &self.flows[slot]));
        all.filter(|(_, flow)| flow.list != ListId::NONE)
    }

    /// A packet of the flow came.
    #[inline(always)]
    pub fn touch(&mut self, at: At, times: Times, now_ns: u64) {
        let slack_ns = SLACK_NS_PER_FLOW * self.len() as u64;
        let list = times.guaranteed.unwrap_or(times.rest);
        let flow = &mut self.flows[at.slot()];
        flow.touched_ns = now_ns;
        flow.is_copy = false;
        // those that have been silent for so long that it matters are in order
        let is_late = now_ns.saturating_sub(flow.placed_ns) > slack_ns;
        if flow.list != list || flow.rest != times.rest || is_late {
            self.keep_for(at.slot(), times, now_ns);
        }
    }

    /// Gives a flow its place in the order of ends again.
    #[inline(never)]
    fn keep_for(&mut self, slot: u32, times: Times, now_ns: u64) {
        let rest = core::mem::replace(&mut self.flows[slot].rest, times.rest);
        if rest != times.rest {
            self.note_change(slot);
        }
        self.place(slot, times.guaranteed.unwrap_or(times.rest), now_ns);
    }

    /// A flow is new, or is kept for another time than before.
    #[cold]
    fn note_change(&mut self, slot: u32) {
        if let Some(changes) = self.changes.as_mut().filter(|_| cfg!(pairs)) {
            changes.note(self.flows[slot].owner, slot);
        }
    }

    /// Which flows changed, once someone has asked for them.
    pub fn changes(&mut self) -> &mut Option<Box<Changes>> {
        &mut self.changes
    }

    /// Slots that were used once.
    pub fn used(&self) -> u32 {
        self.used
    }

    /// The owner of the flow in a slot, and the time of its last packet; `None` if the slot is free.
    pub fn heard(&self, slot: u32) -> Option<(u16, u64)> {
        let flow = &self.flows[slot];
        (flow.list != ListId::NONE).then_some((flow.owner, flow.touched_ns))
    }

    /// Flows are inserted as copies from another guest until `copying` is false: they are no changes.
    pub fn set_copying(&mut self, copying: bool) {
        if let Some(changes) = self.changes.as_mut().filter(|_| cfg!(pairs)) {
            changes.is_copying = copying;
        }
    }

    /// Moves a flow to the end of a list.
    fn place(&mut self, slot: u32, list: ListId, at_ns: u64) {
        let flow = &mut self.flows[slot];
        flow.placed_ns = at_ns;
        let old = core::mem::replace(&mut flow.list, list);
        if old == list && self.order.is_last(list, slot) {
            return;
        }
        if old != ListId::NONE {
            self.order.unlink(old, slot);
        }
        self.order.append(list, slot);
    }

    /// Adds a flow whose packets are not known yet; one that has the same answers is removed. `None` if the
    /// table is full of flows that are to stay longer than this one.
    pub fn insert(&mut self, flow: Flow, times: Times, now_ns: u64) -> Option<At> {
        if let Some(old) = self.find_id(&flow.ids[1], flow.map) {
            self.remove(old.slot());
        }
        let slot = match self.take_slot() {
            Some(slot) => slot,
            None if self.make_room(times, now_ns) => self.free.pop()?,
            None => return None,
        };
        if self.begins(&flow).is_none() {
            self.free.push(slot);
            return None;
        }
        let endpoints = self.endpoints.as_mut();
        if endpoints.is_some_and(|ends| ends.add(flow.map, &flow.ids).is_none()) {
            self.ends(self.watchers.len(), &flow);
            self.free.push(slot);
            return None;
        }
        if let Some(endpoints) = &mut self.endpoints {
            endpoints.count_peers(flow.map, &flow.ids, true);
        }
        self.flows[slot] = Flow {
            list: ListId::NONE,
            rest: ListId::NONE,
            ..flow
        };
        self.counts[usize::from(flow.owner)] += 1;
        let at = At::new(slot, false);
        self.touch(at, times, now_ns);
        if flow.ids[0] != flow.ids[1] {
            self.add_to_index(at);
        }
        self.add_to_index(At::new(slot, true));
        Some(at)
    }

    fn add_to_index(&mut self, at: At) {
        let hash = |at| hash_of(&self.flows, self.keys, at);
        self.index.insert(hash(at), at, &hash);
    }

    /// A slot for a new flow; `None` at the capacity, and if the memory takes no more.
    fn take_slot(&mut self) -> Option<u32> {
        if self.len() >= self.capacity {
            return None;
        }
        if let Some(slot) = self.free.pop() {
            return Some(slot);
        }
        let slot = self.used;
        self.flows.reach(slot, &Flow::new(0, [FlowId::NONE; 2]))?;
        self.order.reach(slot)?;
        self.used += 1;
        Some(slot)
    }

    /// Removes a flow.
    pub fn remove(&mut self, slot: u32) {
        for reply in [false, true] {
            let (at, hash) = (At::new(slot, reply), |at| {
                hash_of(&self.flows, self.keys, at)
            });
            self.index.remove(hash(at), at, &hash);
        }
        let flow = &mut self.flows[slot];
        let list = core::mem::replace(&mut flow.list, ListId::NONE);
        self.counts[usize::from(flow.owner)] -= 1;
        if let Some(endpoints) = &mut self.endpoints {
            endpoints.remove(flow.map, &flow.ids);
            endpoints.count_peers(flow.map, &flow.ids, false);
        }
        if let Some(freed) = &mut self.freed {
            freed.add(&flow.ids);
        }
        self.ends(self.watchers.len(), &self.flows[slot]);
        self.order.unlink(list, slot);
        self.free.push(slot);
        if !self.shifts.is_empty() {
            self.shifts.remove(&slot);
        }
    }

    /// When a flow times out in the list it is in.
    fn expiry_ns(&self, slot: u32) -> u64 {
        let flow = &self.flows[slot];
        flow.touched_ns
            .saturating_add(self.order.timeout_ns(flow.list))
    }

    /// The time at which a flow without further packets ends.
    pub fn end_ns(&self, slot: u32) -> u64 {
        let flow = &self.flows[slot];
        flow.touched_ns
            .saturating_add(self.order.timeout_ns(flow.rest))
    }

    /// Moves flows whose guarantee has run out to those that may be thrown out; returns whether these were all.
    fn shift(&mut self, now_ns: u64, most: usize) -> bool {
        let mut left = most;
        for n in 0..self.order.lists(true).len() {
            let list = self.order.lists(true)[n];
            while let Some(slot) = self.order.first(list) {
                if self.expiry_ns(slot) > now_ns {
                    break;
                }
                if left == 0 {
                    return false;
                }
                left -= 1;
                let flow = &self.flows[slot];
                let (rest, placed_ns) = (flow.rest, flow.placed_ns);
                self.place(slot, rest, placed_ns);
            }
        }
        true
    }

    /// The flow of the lists of one kind that times out first, and when.
    fn earliest(&self, guaranteed: bool) -> Option<(u64, u32)> {
        let lists = self.order.lists(guaranteed).iter();
        let firsts = lists.filter_map(|list| self.order.first(*list));
        firsts.map(|slot| (self.expiry_ns(slot), slot)).min()
    }

    /// Removes the flow that times out first, unless that is the new one.
    fn make_room(&mut self, times: Times, now_ns: u64) -> bool {
        self.shift(now_ns, SHIFTS);
        let Some((expiry_ns, slot)) = self.earliest(false) else {
            return false;
        };
        let new_ns = now_ns.saturating_add(self.order.timeout_ns(times.rest));
        if times.guaranteed.is_none() && new_ns < expiry_ns {
            return false;
        }
        self.remove(slot);
        true
    }

    /// Removes flows that have timed out, at most `most`; returns whether these were all.
    pub fn reap(&mut self, now_ns: u64, most: usize) -> bool {
        let shifted = self.shift(now_ns, most);
        for _ in 0..most {
            match self.earliest(false) {
                Some((expiry_ns, slot)) if expiry_ns <= now_ns => self.remove(slot),
                _ => return shifted,
            }
        }
        false
    }

    /// Changes the capacity; if there are more flows, those go that would have timed out first.
    pub fn set_capacity(&mut self, capacity: usize, now_ns: u64) {
        self.capacity = capacity.min(MAX_FLOWS);
        self.shift(now_ns, usize::MAX);
        while self.len() > self.capacity {
            let first = self.earliest(false).or_else(|| self.earliest(true));
            let (_, slot) = first.expect("every flow is in a list");
            self.remove(slot);
        }
    }

    /// Removes the flows of some owners.
    pub fn remove_of(&mut self, owners: core::ops::Range<u16>) {
        for slot in 0..self.used {
            let flow = &self.flows[slot];
            if flow.list != ListId::NONE && owners.contains(&flow.owner) {
                self.remove(slot);
            }
        }
    }

    /// Removes all flows.
    pub fn clear(&mut self) {
        self.remove_of(0..u16::MAX);
    }

    /// A flow, to change what the table does not depend on, and how its sequence numbers have moved.
    #[inline]
    pub fn parts_mut(&mut self, at: At) -> (&mut Flow, Option<&mut [Shift; 2]>) {
        let shifts = match self.shifts.is_empty() {
            true => None,
            false => self.shifts.get_mut(&at.slot()),
        };
        (&mut self.flows[at.slot()], shifts)
    }

    /// How the sequence numbers of a flow have moved, if they ever have.
    pub fn shifts(&self, slot: u32) -> Option<&[Shift; 2]> {
        self.shifts.get(&slot)
    }

    /// Says how the sequence numbers of a flow have moved.
    pub fn set_shifts(&mut self, slot: u32, shifts: [Shift; 2]) {
        self.shifts.insert(slot, shifts);
    }

    /// Text that ends at `from` has become longer by `by`.
    pub fn move_sequence(&mut self, at: At, from: u32, by: i32) {
        let shifts = self.shifts.entry(at.slot()).or_default();
        shifts[usize::from(at.is_reply())].add(from, by);
        self.note_change(at.slot());
    }

    /// Chooses other keys, while there is no flow.
    pub fn set_keys(&mut self, keys: Keys) {
        if self.used == 0 {
            self.keys = keys;
            let endpoints = self.endpoints.as_ref();
            self.endpoints = endpoints.map(|ends| Box::new(ends.rekeyed(keys)));
        }
    }

    /// When a packet of the flow was last seen.
    pub fn touched_ns(&self, slot: u32) -> u64 {
        self.flows[slot].touched_ns
    }
}

fn hash_of(flows: &Chunks<Flow>, keys: Keys, at: At) -> u64 {
    let flow = &flows[at.slot()];
    keys.hash(&flow.ids[usize::from(at.is_reply())], flow.map)
}

#[cfg(test)]
mod tests;

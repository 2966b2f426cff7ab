// SPDX-License-Identifier: Apache-2.0
//! The flows that are inspected, within a number of flows and a number of bytes.
use core::cmp::Reverse;

use click_core::memory::Growth;

use super::connection::Connection;
use super::hosts::{Hosts, Place};
use super::segment::Origin;
use crate::flows::{At, Chunks, Index, ListId, Order};
use crate::guard::ends::Ends;
use crate::prelude::*;

/// An open connection is not forgotten for another flow for so long.
const GUARANTEED_NS: u64 = 5_000_000_000;
/// Flows that are forgotten for the memory of one packet.
const MOST_FORGOTTEN: usize = 8;
/// Bytes that count as an entry where the memory is looked at now and then.
const ENTRY_BYTES: usize = 2048;
/// Flows that are compared to find a large one.
const MOST_COMPARED: u32 = 64;
/// Flows that are compared to find one of the host with most of them.
const HOSTS_COMPARED: u32 = 16;
/// The part of all flows from which on a host with most of them loses one of its own for a new one.
const SHARE: usize = 8;
const SECOND_NS: u64 = 1_000_000_000;

/// Flows that time out alike. For a new one the one that was silent longest is forgotten, of its own kind first, so that a
/// flood of one kind ends the others last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// TCP before it is open and after it is over, and flows that are dropped.
    Transitory,
    Datagrams,
    Open,
}

/// Seconds of silence, by kind: RFC 5382, REQ-5, RFC 4787, REQ-5.
const TIMEOUTS_S: [u64; 3] = [240, 300, 7440];

/// What is done with the packets of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Inspected,
    /// A rule lets it pass.
    Passed,
    /// A rule drops it.
    Blocked,
}

/// A flow.
#[derive(Clone, Debug)]
pub struct Flow {
    /// As its first packet has them: to the server.
    pub ends: Ends,
    list: ListId,
    heard_ns: u64,
    /// The host that began it.
    host: Place,
    /// Where its client's packets come from.
    pub origin: Origin,
    pub bits: u64,
    /// Rules without a content that have alerted, for each direction.
    pub told: [u64; 2],
    pub state: State,
    /// The server has sent something.
    pub is_answered: bool,
    pub connection: Option<Box<Connection>>,
}

impl Flow {
    pub fn new(ends: Ends, origin: Origin, connection: Option<Box<Connection>>) -> Self {
        Self {
            ends,
            list: ListId::NONE,
            heard_ns: 0,
            host: 0,
            origin,
            bits: 0,
            told: [0; 2],
            state: State::Inspected,
            is_answered: false,
            connection,
        }
    }

    /// Another connection has its place.
    pub fn begin_again(&mut self) {
        (self.bits, self.told) = (0, [0; 2]);
        self.state = State::Inspected;
    }

    fn kind(&self) -> Kind {
        match &self.connection {
            _ if self.state == State::Blocked => Kind::Transitory,
            Some(connection) if connection.is_open() => Kind::Open,
            Some(_) => Kind::Transitory,
            None => Kind::Datagrams,
        }
    }

    fn cost(&self) -> usize {
        self.connection
            .as_ref()
            .map_or(0, |connection| size_of::<Connection>() + connection.cost())
    }
}

/// The flows.
pub struct Table {
    flows: Chunks<Option<Flow>>,
    used: u32,
    free: Vec<u32>,
    index: Index,
    order: Order,
    lists: [ListId; 3],
    keys: [u64; 4],
    pub capacity: usize,
    /// Bytes that streams take, and may take.
    pub bytes: usize,
    pub most_bytes: usize,
    growth: Growth,
    /// Where the search for a large flow continues.
    compared: u32,
    hosts: Hosts,
}

impl Table {
    /// No flows.
    pub fn new(capacity: usize, most_bytes: usize) -> Self {
        let mut order = Order::new();
        let list = |seconds| {
            order
                .add_list(seconds * SECOND_NS, false)
                .unwrap_or(ListId::NONE)
        };
        Self {
            lists: TIMEOUTS_S.map(list),
            flows: Chunks::new(),
            used: 0,
            free: Vec::new(),
            index: Index::new(),
            order,
            keys: [0; 4],
            capacity,
            bytes: 0,
            most_bytes,
            growth: Growth::default(),
            compared: 0,
            hosts: Hosts::default(),
        }
    }

    /// Takes the numbers that senders do not know; before there are flows.
    pub fn set_keys(&mut self, keys: [u64; 4]) {
        self.keys = keys;
        self.hosts.set_key(keys[0] ^ keys[3]);
    }

    pub fn len(&self) -> usize {
        self.used as usize - self.free.len()
    }

    /// Where a flow of a VLAN is, unless its time is over; and whether these are the ends of its answers.
    pub fn find(&mut self, ends: &Ends, zone: u32, now_ns: u64) -> Option<At> {
        let found = self.index.find(hash(ends, zone, &self.keys), |at| {
            let found = named(&self.flows, at);
            found.is_some_and(|(found, known)| found == *ends && known == zone)
        })?;
        if self.is_late(found.slot(), now_ns) {
            self.remove(found.slot());
            return None;
        }
        Some(found)
    }

    /// The flow in a slot.
    pub fn get(&mut self, slot: u32) -> Option<&mut Flow> {
        self.flows[slot].as_mut()
    }

    /// Adds a flow that is not there; none if there is no place.
    pub fn add(&mut self, mut flow: Flow, now_ns: u64) -> Option<At> {
        let cost = flow.cost();
        flow.host = self.hosts.place(flow.ends.source, flow.origin);
        if !self.make_room(flow.kind(), flow.host, now_ns)
            || cost > 0 && !self.has_memory(cost, None, now_ns)
        {
            return None;
        }
        let slot = self.take_slot()?;
        flow.heard_ns = now_ns;
        flow.list = self.lists[flow.kind() as usize];
        self.order.append(flow.list, slot);
        self.hosts.add(flow.host, 1);
        self.bytes += cost;
        let zone = flow.origin.zone;
        let hashes = [flow.ends, flow.ends.reverse()].map(|ends| hash(&ends, zone, &self.keys));
        self.flows[slot] = Some(flow);
        let (flows, keys) = (&self.flows, &self.keys);
        for (reply, hash) in [false, true].into_iter().zip(hashes) {
            self.index
                .insert(hash, At::new(slot, reply), &|at| hash_at(flows, keys, at));
        }
        Some(At::new(slot, false))
    }

    fn take_slot(&mut self) -> Option<u32> {
        if let Some(slot) = self.free.pop() {
            return Some(slot);
        }
        let slot = self.used;
        self.flows.reach(slot, &None)?;
        self.order.reach(slot)?;
        self.used += 1;
        Some(slot)
    }

    /// Changes a flow, of which a packet came, and counts its memory.
    pub fn with<R>(
        &mut self,
        slot: u32,
        now_ns: u64,
        change: impl FnOnce(&mut Flow) -> R,
    ) -> Option<R> {
        let flow = self.flows[slot].as_mut()?;
        let before = flow.cost();
        let result = change(flow);
        self.bytes = self.bytes + flow.cost() - before;
        flow.heard_ns = now_ns;
        let (old, list) = (flow.list, self.lists[flow.kind() as usize]);
        flow.list = list;
        if old != list || !self.order.is_last(list, slot) {
            self.order.unlink(old, slot);
            self.order.append(list, slot);
        }
        Some(result)
    }

    /// True if a flow, which may be new, may take this many bytes more; the flows that were silent longest go for them, then
    /// one that takes more than twice as much as this one.
    pub fn has_memory(&mut self, bytes: usize, flow: Option<At>, now_ns: u64) -> bool {
        for _ in 0..MOST_FORGOTTEN {
            if self.fits(bytes) || !self.forget_one(&[Kind::Transitory, Kind::Open], now_ns) {
                break;
            }
        }
        if !self.fits(bytes) {
            let held = flow.map_or(0, |at| self.cost(at.slot()));
            self.forget_larger(2 * (held + bytes));
        }
        self.fits(bytes) && (0..=bytes / ENTRY_BYTES).all(|_| self.growth.takes_entry())
    }

    fn fits(&self, bytes: usize) -> bool {
        self.bytes + bytes <= self.most_bytes
    }

    fn cost(&self, slot: u32) -> usize {
        self.flows[slot].as_ref().map_or(0, Flow::cost)
    }

    /// Forgets the flow that takes most of the next few ones, if that is more than some bytes. So a host that fills the
    /// memory loses it to those that take less.
    fn forget_larger(&mut self, bytes: usize) {
        let some = self.used.min(MOST_COMPARED);
        let (first, used) = (self.compared, self.used);
        let slots = (0..some).map(|n| (first + n) % used);
        let largest = slots.max_by_key(|slot| self.cost(*slot));
        self.compared = first.wrapping_add(some) % used.max(1);
        if let Some(slot) = largest.filter(|slot| self.cost(*slot) > bytes) {
            self.remove(slot);
        }
    }

    /// A flow of the host that has most of the next few ones, and its number of flows; one that is not open before others, the
    /// one that was silent longest of these.
    fn greediest(&mut self) -> Option<(u32, u32)> {
        let some = self.used.min(HOSTS_COMPARED);
        let (first, used) = (self.compared, self.used);
        let weigh = |slot: u32| {
            let flow = self.flows[slot].as_ref()?;
            let count = self.hosts.get(flow.host);
            let is_closed = flow.kind() != Kind::Open;
            Some(((count, is_closed, Reverse(flow.heard_ns)), slot))
        };
        let slots = (0..some).map(|n| (first + n) % used);
        let found = slots.filter_map(weigh).max_by_key(|(weight, _)| *weight);
        self.compared = first.wrapping_add(some) % used.max(1);
        found.map(|((count, ..), slot)| (slot, count))
    }

    /// Makes a place for a flow of a host. In a full table a host with a large part of it gives one up, or gets no more; else
    /// the flow that was silent longest goes, or one of a host that has more than twice as many as this one.
    fn make_room(&mut self, kind: Kind, host: Place, now_ns: u64) -> bool {
        if self.len() < self.capacity {
            return true;
        }
        let order = match kind {
            Kind::Datagrams => [Kind::Datagrams, Kind::Transitory, Kind::Open],
            _ => [Kind::Transitory, Kind::Datagrams, Kind::Open],
        };
        let (own, share) = (self.hosts.get(host), (self.capacity / SHARE) as u32);
        let oldest = self.oldest(&order, now_ns);
        let of_greedy = oldest.filter(|slot| self.held_by_host(*slot) >= own.max(share));
        let goes = of_greedy.or_else(|| match self.greediest() {
            Some((slot, count)) if count > own && count >= share => Some(slot),
            Some((slot, count)) if own >= share => {
                (count == own && self.is_free(slot, now_ns)).then_some(slot)
            }
            Some((slot, count)) => oldest.or((count > 2 * (own + 1)).then_some(slot)),
            None => oldest,
        });
        if let Some(slot) = goes {
            self.remove(slot);
        }
        goes.is_some()
    }

    fn held_by_host(&self, slot: u32) -> u32 {
        let flow = self.flows[slot].as_ref();
        flow.map_or(0, |flow| self.hosts.get(flow.host))
    }

    /// True if a flow is no open connection, or one that was silent for a while.
    fn is_free(&self, slot: u32, now_ns: u64) -> bool {
        let is_free = |flow: &Flow| {
            flow.kind() != Kind::Open || now_ns.saturating_sub(flow.heard_ns) >= GUARANTEED_NS
        };
        self.flows[slot].as_ref().is_some_and(is_free)
    }

    /// The flow that was silent longest, of the first of these kinds that has one that may go.
    fn oldest(&self, kinds: &[Kind], now_ns: u64) -> Option<u32> {
        let oldest = |kind: &Kind| self.order.first(self.lists[*kind as usize]);
        let mut found = kinds.iter().filter_map(oldest);
        found.find(|slot| self.is_free(*slot, now_ns))
    }

    /// Forgets it.
    fn forget_one(&mut self, kinds: &[Kind], now_ns: u64) -> bool {
        let found = self.oldest(kinds, now_ns);
        if let Some(slot) = found {
            self.remove(slot);
        }
        found.is_some()
    }

    fn is_late(&self, slot: u32, now_ns: u64) -> bool {
        let Some(flow) = &self.flows[slot] else {
            return true;
        };
        now_ns.saturating_sub(flow.heard_ns) >= self.order.timeout_ns(flow.list)
    }

    /// Forgets the flows whose time is over, at most `most` of each kind.
    pub fn reap(&mut self, most: usize, now_ns: u64) {
        for list in self.lists {
            for _ in 0..most {
                match self.order.first(list) {
                    Some(slot) if self.is_late(slot, now_ns) => self.remove(slot),
                    _ => break,
                }
            }
        }
    }

    pub fn remove(&mut self, slot: u32) {
        let Some(flow) = &self.flows[slot] else {
            return;
        };
        self.bytes -= flow.cost();
        self.hosts.remove(flow.host, 1);
        self.order.unlink(flow.list, slot);
        let zone = flow.origin.zone;
        let hashes = [flow.ends, flow.ends.reverse()].map(|ends| hash(&ends, zone, &self.keys));
        let (flows, keys) = (&self.flows, &self.keys);
        for (reply, hash) in [false, true].into_iter().zip(hashes) {
            self.index
                .remove(hash, At::new(slot, reply), &|at| hash_at(flows, keys, at));
        }
        self.flows[slot] = None;
        self.free.push(slot);
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        (0..self.used).for_each(|slot| self.remove(slot));
    }

    /// Changes all flows without a packet.
    pub fn each(&mut self, mut change: impl FnMut(&mut Flow)) {
        for slot in 0..self.used {
            if let Some(flow) = self.flows[slot].as_mut() {
                let before = flow.cost();
                change(flow);
                self.bytes = self.bytes + flow.cost() - before;
            }
        }
    }
}

/// A hash of a flow's ends in a VLAN.
fn hash(ends: &Ends, zone: u32, keys: &[u64; 4]) -> u64 {
    let [a, b, c, d] = *keys;
    ends.hash(&[a ^ u64::from(zone), b, c, d])
}

/// The ends of a flow in one direction, and its VLAN.
fn named(flows: &Chunks<Option<Flow>>, at: At) -> Option<(Ends, u32)> {
    let flow = flows[at.slot()].as_ref()?;
    let ends = match at.is_reply() {
        true => flow.ends.reverse(),
        false => flow.ends,
    };
    Some((ends, flow.origin.zone))
}

fn hash_at(flows: &Chunks<Option<Flow>>, keys: &[u64; 4], at: At) -> u64 {
    named(flows, at).map_or(0, |(ends, zone)| hash(&ends, zone, keys))
}

// SPDX-License-Identifier: Apache-2.0
//! The flows that are inspected, within a number of flows and a number of bytes.
use core::cmp::Reverse;

use click_core::memory::Growth;

use super::connection::Connection;
use super::segment::Origin;
use super::vlans::{Held, Vlans};
use crate::flows::{At, ListId};
use crate::guard::ends::Ends;
use crate::guard::hosts::{Hosts, Place, network};
use crate::guard::slots::{Member, Slots};
use crate::prelude::*;

/// An open connection is not forgotten for another flow for this long.
const GUARANTEED_NS: u64 = 5_000_000_000;
/// Flows that are forgotten for the memory of one packet.
const MAX_FORGOTTEN: usize = 8;
/// Bytes that count as an entry where the memory is checked now and then.
const ENTRY_BYTES: usize = 2048;
/// Flows that are compared to find a large one, or one of a larger VLAN.
const MAX_COMPARED: u32 = 64;
/// Flows that are compared to find one of the host with most of them.
const HOSTS_COMPARED: u32 = 16;
/// The part of all flows from which on a host with most of them loses one of its own for a new one.
const SHARE: usize = 8;
/// A VLAN takes no more flows and bytes than this many times as many as are free then. So one VLAN leaves an eighth to others,
/// and two a fifteenth.
const SPARE: usize = 7;
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

const KINDS: usize = 3;
/// Seconds of silence, by kind: RFC 5382, REQ-5, RFC 4787, REQ-5.
const TIMEOUTS_S: [u64; KINDS] = [240, 300, 7440];

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

/// A zone is a VLAN.
impl Member for Flow {
    fn ends(&self) -> Ends {
        self.ends
    }

    fn zone(&self) -> u32 {
        self.origin.zone
    }

    fn heard_ns(&self) -> u64 {
        self.heard_ns
    }

    fn list(&self) -> ListId {
        self.list
    }

    fn set_list(&mut self, list: ListId) {
        self.list = list;
    }
}

/// The flows.
pub struct Table {
    /// A list for each kind.
    slots: Slots<Flow, KINDS>,
    pub capacity: usize,
    /// Bytes that streams take, and may take.
    pub bytes: usize,
    pub most_bytes: usize,
    growth: Growth,
    /// Where the search for a large flow continues.
    compared: u32,
    hosts: Hosts,
    vlans: Vlans,
}

impl Table {
    /// No flows.
    pub fn new(capacity: usize, most_bytes: usize) -> Self {
        Self {
            slots: Slots::new(TIMEOUTS_S.map(|seconds| seconds * SECOND_NS)),
            capacity,
            bytes: 0,
            most_bytes,
            growth: Growth::default(),
            compared: 0,
            hosts: Hosts::default(),
            vlans: Vlans::default(),
        }
    }

    /// Sets the numbers that senders do not know; before there are flows.
    pub fn set_keys(&mut self, keys: [u64; 4]) {
        self.slots.set_keys(keys);
        self.hosts.set_key(keys[0] ^ keys[3]);
    }

    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Where a flow of a VLAN is, unless its time is over; and whether these are the ends of its answers.
    pub fn find(&mut self, ends: &Ends, zone: u32, now_ns: u64) -> Option<At> {
        let found = self.slots.find(ends, zone)?;
        if self.slots.is_late(found.slot(), now_ns) {
            self.remove(found.slot());
            return None;
        }
        Some(found)
    }

    /// The flow in a slot.
    pub fn get(&mut self, slot: u32) -> Option<&mut Flow> {
        self.slots.get_mut(slot)
    }

    /// Adds a flow that is not there; none if there is no place.
    pub fn add(&mut self, mut flow: Flow, now_ns: u64) -> Option<At> {
        let cost = flow.cost();
        flow.host = self
            .hosts
            .place(network(flow.ends.source), flow.origin.station());
        let (host, vlan, kind) = (flow.host, flow.origin.vlan, flow.kind());
        if !self.make_room(kind, (host, vlan), now_ns)
            || cost > 0 && !self.has_memory(cost, (None, vlan), now_ns)
        {
            return None;
        }
        flow.heard_ns = now_ns;
        let slot = self.slots.insert(flow, kind as usize)?;
        self.hosts.add(host, 1);
        self.vlans.get_mut(vlan).flows += 1;
        self.count(vlan, 0, cost);
        Some(At::new(slot, false))
    }

    /// Changes a flow, of which a packet came, and counts its memory.
    pub fn with<R>(
        &mut self,
        slot: u32,
        now_ns: u64,
        change: impl FnOnce(&mut Flow) -> R,
    ) -> Option<R> {
        let flow = self.slots.get_mut(slot)?;
        let before = flow.cost();
        let result = change(flow);
        flow.heard_ns = now_ns;
        let (kind, vlan, after) = (flow.kind(), flow.origin.vlan, flow.cost());
        self.slots.touch(slot, kind as usize);
        self.count(vlan, before, after);
        Some(result)
    }

    /// Counts the bytes of a flow that were and are.
    fn count(&mut self, vlan: u16, before: usize, after: usize) {
        if before != after {
            let held = self.vlans.get_mut(vlan);
            held.bytes = held.bytes + after - before;
            self.bytes = self.bytes + after - before;
        }
    }

    /// True if a flow of a VLAN, which may be new, may take this many bytes more; the flows that were silent longest go for
    /// them, then one of this VLAN that takes more than twice as much as this one. A VLAN with fewer bytes loses none.
    pub fn has_memory(
        &mut self,
        bytes: usize,
        (flow, vlan): (Option<At>, u16),
        now_ns: u64,
    ) -> bool {
        let own = flow.map(|at| at.slot());
        for _ in 0..MAX_FORGOTTEN {
            if self.fits(bytes, vlan) || !self.forget_one((own, vlan), now_ns) {
                break;
            }
        }
        if !self.fits(bytes, vlan) {
            let held = own.map_or(0, |slot| self.cost(slot));
            self.forget_larger(held + bytes, vlan);
        }
        self.fits(bytes, vlan) && (0..=bytes / ENTRY_BYTES).all(|_| self.growth.takes_entry())
    }

    fn fits(&self, bytes: usize, vlan: u16) -> bool {
        let free = self.most_bytes.checked_sub(self.bytes + bytes);
        free.is_some_and(|free| self.vlans.get(vlan).bytes + bytes <= SPARE.saturating_mul(free))
    }

    /// True if a VLAN may have a flow more, and no other one goes for it.
    fn has_place(&self, vlan: u16) -> bool {
        let free = self.capacity.saturating_sub(self.len());
        (self.vlans.get(vlan).flows as usize) < SPARE * free
    }

    fn cost(&self, slot: u32) -> usize {
        self.slots.get(slot).map_or(0, Flow::cost)
    }

    /// The next few slots; another call continues behind them.
    fn next_slots(&mut self, most: u32) -> impl Iterator<Item = u32> + use<> {
        let (first, used) = (self.compared, self.slots.used());
        let some = used.min(most);
        self.compared = first.wrapping_add(some) % used.max(1);
        (0..some).map(move |n| (first + n) % used)
    }

    /// True if a flow may go for one of a VLAN: it is of the same one, or free and of one that holds more. Senders may forge tags,
    /// so for another VLAN no open connection goes.
    fn may_go(&self, slot: u32, vlan: u16, now_ns: u64, of: impl Fn(Held) -> usize) -> bool {
        let flow = self.slots.get(slot);
        flow.is_some_and(|flow| {
            let other = flow.origin.vlan;
            let holds_more = || of(self.vlans.get(other)) > of(self.vlans.get(vlan));
            other == vlan || self.is_free(slot, now_ns) && holds_more()
        })
    }

    /// Forgets the flow of a VLAN that takes most of the next few ones, if that is more than twice some bytes. So a host that
    /// fills the memory loses it to those that take less.
    fn forget_larger(&mut self, bytes: usize, vlan: u16) {
        let slots = self.next_slots(MAX_COMPARED);
        let is_own = |slot: &u32| {
            let flow = self.slots.get(*slot);
            flow.is_some_and(|flow| flow.origin.vlan == vlan)
        };
        let largest = slots.filter(is_own).max_by_key(|slot| self.cost(*slot));
        if let Some(slot) = largest.filter(|slot| self.cost(*slot) > 2 * bytes) {
            self.remove(slot);
        }
    }

    /// A free flow of the VLAN that has most of the next few ones, if it has more than another VLAN; the one that was silent
    /// longest of these.
    fn of_larger_vlan(&mut self, vlan: u16, now_ns: u64) -> Option<u32> {
        let own = self.vlans.get(vlan).flows;
        if own as usize == self.len() {
            return None;
        }
        let slots = self.next_slots(MAX_COMPARED);
        let weigh = |slot: u32| {
            let flow = self.slots.get(slot)?;
            let count = self.vlans.get(flow.origin.vlan).flows;
            let goes = count > own && self.is_free(slot, now_ns);
            goes.then_some(((count, Reverse(flow.heard_ns)), slot))
        };
        let found = slots.filter_map(weigh).max_by_key(|(weight, _)| *weight);
        found.map(|(_, slot)| slot)
    }

    /// A flow of the host that has most of the next few ones that may go for a VLAN, and its number of flows; one that is not
    /// open before others, the one that was silent longest of these.
    fn greediest(&mut self, vlan: u16, now_ns: u64) -> Option<(u32, u32)> {
        let slots = self.next_slots(HOSTS_COMPARED);
        let weigh = |slot: u32| {
            let flow = self.slots.get(slot)?;
            let count = self.hosts.get(flow.host);
            let is_closed = flow.kind() != Kind::Open;
            let may_go = self.may_go(slot, vlan, now_ns, |held| held.flows as usize);
            may_go.then_some(((count, is_closed, Reverse(flow.heard_ns)), slot))
        };
        let found = slots.filter_map(weigh).max_by_key(|(weight, _)| *weight);
        found.map(|((count, ..), slot)| (slot, count))
    }

    /// Makes a place for a flow of a host in a VLAN. In a full table a host with a large part of it gives one up, or gets no
    /// more. For others a free flow of a VLAN with more flows goes, then the one of this VLAN that was silent longest, or one of a
    /// host that has more than twice as many as this one. A VLAN with fewer flows loses none. False if none may go: the packet
    /// does not pass.
    fn make_room(&mut self, kind: Kind, (host, vlan): (Place, u16), now_ns: u64) -> bool {
        if self.has_place(vlan) {
            return true;
        }
        let order = match kind {
            Kind::Datagrams => [Kind::Datagrams, Kind::Transitory, Kind::Open],
            _ => [Kind::Transitory, Kind::Datagrams, Kind::Open],
        };
        let (own, share) = (self.hosts.get(host), (self.capacity / SHARE) as u32);
        let of_larger = match own < share {
            true => self.of_larger_vlan(vlan, now_ns),
            false => None,
        };
        let may_go = |slot| self.may_go(slot, vlan, now_ns, |held| held.flows as usize);
        let oldest = self.oldest(&order, may_go, now_ns);
        let of_greedy = oldest.filter(|slot| self.held_by_host(*slot) >= own.max(share));
        let goes = of_larger
            .or(of_greedy)
            .or_else(|| match self.greediest(vlan, now_ns) {
                Some((slot, count)) if count > own && count >= share => Some(slot),
                Some((slot, count)) if own >= share => {
                    (count == own && self.is_free(slot, now_ns)).then_some(slot)
                }
                Some((slot, count)) => oldest.or_else(|| {
                    (count > 2 * (own + 1) || self.is_free(slot, now_ns)).then_some(slot)
                }),
                None => oldest,
            });
        if let Some(slot) = goes {
            self.remove(slot);
        }
        goes.is_some()
    }

    fn held_by_host(&self, slot: u32) -> u32 {
        let flow = self.slots.get(slot);
        flow.map_or(0, |flow| self.hosts.get(flow.host))
    }

    /// True if a flow is no open connection, or one that was silent for a while.
    fn is_free(&self, slot: u32, now_ns: u64) -> bool {
        let is_free = |flow: &Flow| {
            flow.kind() != Kind::Open || now_ns.saturating_sub(flow.heard_ns) >= GUARANTEED_NS
        };
        self.slots.get(slot).is_some_and(is_free)
    }

    /// The flow that was silent longest, of the first of these kinds that has one that may go.
    fn oldest(&self, kinds: &[Kind], may_go: impl Fn(u32) -> bool, now_ns: u64) -> Option<u32> {
        let oldest = |kind: &Kind| self.slots.first(*kind as usize);
        let mut found = kinds.iter().filter_map(oldest);
        found.find(|slot| self.is_free(*slot, now_ns) && may_go(*slot))
    }

    /// Forgets a flow that has memory for a flow of a VLAN, but not that one itself.
    fn forget_one(&mut self, (own, vlan): (Option<u32>, u16), now_ns: u64) -> bool {
        let next = self.next_slots(HOSTS_COMPARED);
        let may_go =
            |slot| Some(slot) != own && self.may_go(slot, vlan, now_ns, |held: Held| held.bytes);
        let found = self.oldest(&[Kind::Transitory, Kind::Open], may_go, now_ns);
        // behind one that may not go
        let found = found.or_else(|| {
            let has_memory = |slot: &u32| self.cost(*slot) > 0 && self.is_free(*slot, now_ns);
            next.filter(has_memory)
                .filter(|slot| may_go(*slot))
                .min_by_key(|slot| self.slots.get(*slot).map(|flow| flow.heard_ns))
        });
        if let Some(slot) = found {
            self.remove(slot);
        }
        found.is_some()
    }

    /// Forgets the flows whose time is over, at most `most` of each kind.
    pub fn reap(&mut self, most: usize, now_ns: u64) {
        for kind in 0..KINDS {
            for _ in 0..most {
                match self.slots.first_late(kind, now_ns) {
                    Some(slot) => self.remove(slot),
                    None => break,
                }
            }
        }
    }

    pub fn remove(&mut self, slot: u32) {
        if let Some(flow) = self.slots.remove(slot) {
            self.count(flow.origin.vlan, flow.cost(), 0);
            self.hosts.remove(flow.host, 1);
            self.vlans.get_mut(flow.origin.vlan).flows -= 1;
        }
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        (0..self.slots.used()).for_each(|slot| self.remove(slot));
    }

    /// Changes all flows without a packet.
    pub fn each(&mut self, mut change: impl FnMut(&mut Flow)) {
        for slot in 0..self.slots.used() {
            if let Some(flow) = self.slots.get_mut(slot) {
                let before = flow.cost();
                change(flow);
                let (vlan, after) = (flow.origin.vlan, flow.cost());
                self.count(vlan, before, after);
            }
        }
    }
}

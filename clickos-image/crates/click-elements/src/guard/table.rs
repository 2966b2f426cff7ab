// SPDX-License-Identifier: Apache-2.0
//! All flows of a firewall, as many as it has places for.
use alloc::rc::Rc;
use core::cell::RefCell;
use core::ops::Range;

use super::ends::{Ends, address, number};
use super::flow::{Flow, KINDS, Kind};
use super::seen::Tcp;
use super::targets::{Target, Targets};
use super::window::Windows;
use crate::carried;
use crate::flows::{At, Changes, Chunks, Copied, Delta, Index, ListId, Order, is_older};
use crate::prelude::*;

/// The first line of flows as text: those of a firewall, and those of a balancer.
const HEAD: &str = "flowguard 1";
const BALANCED: &str = "balancer 1";
/// A flow is not thrown out for another for so long.
const GUARANTEED_NS: u64 = 5_000_000_000;

/// All flows have one owner.
const OWNER: u16 = 0;

/// How a packet came.
pub struct Way<'a> {
    /// Its sender may begin a flow.
    pub opens: bool,
    /// It is an answer by its kind.
    pub answers: bool,
    /// It comes from the outside.
    pub outside: bool,
    /// The server of a new flow of a balancer; no flow begins without one.
    pub server: &'a mut dyn FnMut() -> Option<u128>,
}

/// The flows.
pub struct Table {
    flows: Chunks<Option<Flow>>,
    /// Places that have had a flow.
    used: u32,
    free: Vec<u32>,
    index: Index,
    order: Order,
    lists: [ListId; KINDS.len()],
    keys: [u64; 4],
    capacity: usize,
    /// The flows that changed, once another guest has asked for them.
    changes: Option<Box<Changes>>,
    /// Where a balancer sends flows.
    pub targets: Option<Rc<RefCell<Targets>>>,
}

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Its flow has this target.
    Passes(Target),
    /// It belongs to no flow, and may begin none.
    NoFlow,
    /// Its connection has no place for it.
    BeyondWindow,
    /// The table is full.
    Full,
}

impl Table {
    /// No flows. `timeouts_ns` are those of the kinds.
    pub fn new(capacity: usize, timeouts_ns: [u64; KINDS.len()]) -> Self {
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
            capacity,
            changes: None,
            targets: None,
        }
    }

    /// How long flows of a kind are kept, by its place in `KINDS`.
    pub fn timeout_ns(&self, kind: usize) -> u64 {
        self.order.timeout_ns(self.lists[kind])
    }

    /// Changes it, also for the flows that there are.
    pub fn set_timeout(&mut self, kind: usize, timeout_ns: u64) {
        self.order.set_timeout(self.lists[kind], timeout_ns);
    }

    /// Takes the numbers that senders do not know.
    pub fn set_keys(&mut self, keys: [u64; 4]) {
        self.keys = keys;
    }

    /// How many flows there are, and how many there may be.
    pub fn len(&self) -> usize {
        self.used as usize - self.free.len()
    }

    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Where a flow is, and whether these are the ends of its answers.
    #[inline]
    fn find(&self, ends: &Ends) -> Option<At> {
        self.index.find(ends.hash(&self.keys), |at| {
            ends_at(&self.flows, at).is_some_and(|found| found == *ends)
        })
    }

    /// True if the inside, or else the outside, sent packets with these ends as part of a flow.
    pub fn is_of(&mut self, ends: &Ends, inside: bool, now_ns: u64) -> bool {
        let Some(at) = self.find(ends) else {
            return false;
        };
        let from_outside = self.is_from_outside(at);
        !self.end_if_late(at.slot(), now_ns) && inside != from_outside
    }

    /// True if the outside sends packets with the ends that were found there.
    fn is_from_outside(&self, at: At) -> bool {
        let flow = self.flows[at.slot()].as_ref();
        flow.is_some_and(|flow| flow.is_inbound != at.is_reply())
    }

    /// The target of the flow with these ends.
    pub fn target(&self, ends: &Ends) -> Option<Target> {
        let at = self.find(ends)?;
        self.flows[at.slot()].as_ref().map(|flow| flow.target)
    }

    /// The number of an address to which a balancer sends flows.
    fn number(&mut self, address: u128) -> Option<Target> {
        self.targets.as_ref()?.borrow_mut().number(address)
    }

    /// The address of a number, and how checksums change with it.
    pub fn address(&self, target: Target) -> Option<(u128, Delta)> {
        self.targets.as_ref()?.borrow().get(target)
    }

    /// A flow of a balancer begins or ends.
    fn count(&self, target: Target, begins: bool) {
        if let Some(targets) = &self.targets {
            targets.borrow_mut().count(target, begins);
        }
    }

    /// Judges a packet of a flow.
    pub fn judge(&mut self, ends: Ends, tcp: Option<Tcp>, way: Way<'_>, now_ns: u64) -> Verdict {
        let found = self.find(&ends);
        let found = found.filter(|at| !self.end_if_late(at.slot(), now_ns));
        match found {
            // it has the source of the other side
            Some(at) if self.is_from_outside(at) != way.outside => Verdict::NoFlow,
            Some(at) if way.answers == at.is_reply() || !is_ping(&ends) => {
                self.go_on(at, ends, tcp, way, now_ns)
            }
            None if way.opens && !way.answers => self.begin(ends, tcp, way, now_ns),
            _ => Verdict::NoFlow,
        }
    }

    /// A packet of a known flow.
    fn go_on(
        &mut self,
        at: At,
        ends: Ends,
        tcp: Option<Tcp>,
        way: Way<'_>,
        now_ns: u64,
    ) -> Verdict {
        let slot = at.slot();
        let Some(flow) = self.flows[slot].as_mut() else {
            return Verdict::NoFlow;
        };
        let side = usize::from(at.is_reply());
        let mut has_stepped = false;
        if let (Some(windows), Some(tcp)) = (flow.windows.as_mut(), tcp) {
            let again = tcp.begins() && way.opens;
            if again && windows.is_over() {
                self.remove(slot);
                return self.begin(ends, Some(tcp), way, now_ns);
            }
            let end = windows.sides[side].end;
            let fits = windows.take(side, &tcp);
            has_stepped = windows.sides[side].has_stepped(end);
            if !fits && again {
                flow.ask_again(side, &tcp);
                return Verdict::Passes(flow.target);
            }
            if !fits && !flow.begins_anew(side, &tcp) {
                return Verdict::BeyondWindow;
            }
            has_stepped |= !fits;
        }
        (flow.heard_ns, flow.is_copy) = (now_ns, false);
        let (old, kind) = (flow.list, flow.kind_now());
        let list = self.lists[kind as usize];
        (flow.list, flow.kind) = (list, kind);
        let target = flow.target;
        if old != list || has_stepped {
            self.note_change(slot);
        }
        if old != list || !self.order.is_last(list, slot) {
            self.order.unlink(old, slot);
            self.order.append(list, slot);
        }
        Verdict::Passes(target)
    }

    /// The first packet of a flow.
    fn begin(&mut self, ends: Ends, tcp: Option<Tcp>, way: Way<'_>, now_ns: u64) -> Verdict {
        if tcp.is_some_and(|tcp| tcp.is_rst() || way.outside && !tcp.begins()) {
            return Verdict::NoFlow;
        }
        let target = match self.targets {
            None => Some(0),
            Some(_) => (way.server)().and_then(|server| self.number(server)),
        };
        let Some(target) = target else {
            return Verdict::NoFlow;
        };
        let mut windows = tcp.map(|tcp| Windows::new(&tcp));
        if let (Some(windows), Some(tcp)) = (&mut windows, tcp) {
            windows.take(0, &tcp);
        }
        let mut flow = Flow {
            ends,
            list: ListId::NONE,
            kind: Kind::Other,
            target,
            heard_ns: now_ns,
            is_inbound: way.outside,
            is_copy: false,
            windows,
            again: None,
        };
        flow.kind = flow.kind_now();
        match self.add(flow, now_ns) {
            true => Verdict::Passes(target),
            false => Verdict::Full,
        }
    }

    /// Adds a flow, maybe instead of another; false if there is no place.
    pub fn add(&mut self, mut flow: Flow, now_ns: u64) -> bool {
        if self.find(&flow.ends).is_some() || !self.make_room(now_ns) {
            return false;
        }
        let Some(slot) = self.take_slot() else {
            return false;
        };
        flow.list = self.lists[flow.kind as usize];
        self.order.append(flow.list, slot);
        self.count(flow.target, true);
        let hashes = [flow.ends, flow.ends.reverse()].map(|ends| ends.hash(&self.keys));
        self.flows[slot] = Some(flow);
        self.note_change(slot);
        let (flows, keys) = (&self.flows, &self.keys);
        for (reply, hash) in [false, true].into_iter().zip(hashes) {
            self.index
                .insert(hash, At::new(slot, reply), &|at| hash_at(flows, keys, at));
        }
        true
    }

    /// Adds flows of a state. Each is there before the next one gets a target: that takes the place of one without flows.
    pub fn set(&mut self, flows: Vec<(Flow, u128)>, now_ns: u64) {
        for (flow, target) in flows {
            if let Some(flow) = self.numbered(flow, target) {
                self.add(flow, now_ns);
            }
        }
    }

    /// Adds flows of another guest; returns how many of all ended or did not come. The one heard of last stays.
    pub fn merge(&mut self, flows: Vec<(Flow, u128)>, now_ns: u64) -> u64 {
        self.set_copying(true);
        let mut lost = 0;
        for (flow, target) in flows {
            let known = self.find(&flow.ends).map(At::slot);
            let wanted = self.len() + usize::from(known.is_none());
            let stays = |known: &Flow| !is_older(known.heard_ns, known.is_copy, flow.heard_ns);
            if known.is_some_and(|slot| self.flows[slot].as_ref().is_some_and(stays)) {
                continue;
            }
            let Some(mut flow) = self.numbered(flow, target) else {
                lost += 1;
                continue;
            };
            if let Some(slot) = known {
                self.remove(slot);
            }
            flow.is_copy = true;
            if let Some(windows) = &mut flow.windows {
                windows.set_behind();
            }
            self.add(flow, now_ns);
            lost += (wanted - self.len()) as u64;
        }
        self.set_copying(false);
        lost
    }

    /// Copies of another guest's flows are no changes.
    fn set_copying(&mut self, copying: bool) {
        if let Some(changes) = &mut self.changes {
            changes.is_copying = copying;
        }
    }

    /// A flow is new, is kept for another time than before, or is far beyond its copy.
    #[cold]
    fn note_change(&mut self, slot: u32) {
        if let Some(changes) = &mut self.changes {
            changes.note(OWNER, slot);
        }
    }

    /// A place for a new flow; `None` if the memory takes no more.
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

    /// True if there is a place for one more flow, maybe that of one that was silent longest.
    fn make_room(&mut self, now_ns: u64) -> bool {
        if self.len() < self.capacity {
            return true;
        }
        let spared = KINDS.len() - 1;
        let oldest = |list: &ListId| self.order.first(*list);
        let mut candidates = self.lists[..spared].iter().filter_map(oldest);
        let is_old = |slot: &u32| {
            let flow = self.flows[*slot].as_ref();
            flow.is_some_and(|f| now_ns.saturating_sub(f.heard_ns) >= GUARANTEED_NS)
        };
        match candidates.find(is_old) {
            Some(slot) => {
                self.remove(slot);
                true
            }
            None => false,
        }
    }

    fn is_late(&self, slot: u32, now_ns: u64) -> bool {
        let Some(flow) = &self.flows[slot] else {
            return true;
        };
        now_ns.saturating_sub(flow.heard_ns) >= self.order.timeout_ns(flow.list)
    }

    /// Forgets a flow whose time is over; says whether it is.
    fn end_if_late(&mut self, slot: u32, now_ns: u64) -> bool {
        let is_late = self.is_late(slot, now_ns);
        if is_late {
            self.remove(slot);
        }
        is_late
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

    fn remove(&mut self, slot: u32) {
        let Some(flow) = &self.flows[slot] else {
            return;
        };
        self.order.unlink(flow.list, slot);
        self.count(flow.target, false);
        let hashes = [flow.ends, flow.ends.reverse()].map(|ends| ends.hash(&self.keys));
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
        for slot in 0..self.used {
            self.remove(slot);
        }
    }

    /// The line of a flow.
    pub fn text(&self, flow: &Flow, now_ns: u64) -> String {
        let line = flow.line(now_ns);
        match self.address(flow.target) {
            None => line,
            Some((target, _)) => format!("{line} {}", address(target)),
        }
    }

    /// Reads lines of flows, each with its target.
    pub fn parse(&self, value: &str, now_ns: u64) -> Result<Vec<(Flow, u128)>, HandlerError> {
        carried::parse(self.head(), value, |words| {
            let (target, words) = match (&self.targets, words) {
                (None, _) => (0, words),
                (Some(_), [words @ .., target]) => (number(target)?, words),
                _ => return None,
            };
            Some((Flow::of(words, now_ns)?, target))
        })
    }

    /// A flow of another table, with the number that its target has here.
    pub fn renumbered(&mut self, flow: &Flow, from: &Self) -> Option<Flow> {
        let target = match from.targets {
            None => 0,
            Some(_) => from.address(flow.target)?.0,
        };
        self.numbered(flow.clone(), target)
    }

    /// Gives a flow the number of its target.
    fn numbered(&mut self, mut flow: Flow, target: u128) -> Option<Flow> {
        if self.targets.is_some() {
            flow.target = self.number(target)?;
        }
        Some(flow)
    }

    /// All flows by kind, those silent longest first.
    pub fn by_silence(&self) -> impl Iterator<Item = &Flow> {
        let slots = self.lists.iter();
        let slots = slots.flat_map(|list| self.order.members(*list));
        slots.filter_map(|slot| self.flows[slot].as_ref())
    }

    /// All flows, in no order.
    pub fn iter(&self) -> impl Iterator<Item = &Flow> {
        (0..self.used).filter_map(|slot| self.flows[slot].as_ref())
    }
}

impl Copied for Table {
    fn head(&self) -> &'static str {
        match self.targets {
            None => HEAD,
            Some(_) => BALANCED,
        }
    }

    fn owners(&self) -> Range<u16> {
        OWNER..OWNER + 1
    }

    fn used(&self) -> u32 {
        self.used
    }

    fn heard(&self, slot: u32) -> Option<(u16, u64)> {
        let flow = self.flows[slot].as_ref();
        flow.map(|flow| (OWNER, flow.heard_ns))
    }

    fn line(&self, slot: u32, now_ns: u64) -> String {
        let flow = self.flows[slot].as_ref();
        flow.map_or_else(String::new, |flow| self.text(flow, now_ns))
    }

    fn changes(&mut self) -> &mut Option<Box<Changes>> {
        &mut self.changes
    }
}

fn is_ping(ends: &Ends) -> bool {
    matches!(ends.protocol, 1 | 58)
}

/// The ends of a flow in one direction.
fn ends_at(flows: &Chunks<Option<Flow>>, at: At) -> Option<Ends> {
    let flow = flows[at.slot()].as_ref()?;
    Some(match at.is_reply() {
        true => flow.ends.reverse(),
        false => flow.ends,
    })
}

fn hash_at(flows: &Chunks<Option<Flow>>, keys: &[u64; 4], at: At) -> u64 {
    ends_at(flows, at).map_or(0, |ends| ends.hash(keys))
}

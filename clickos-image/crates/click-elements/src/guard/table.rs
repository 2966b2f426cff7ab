// SPDX-License-Identifier: Apache-2.0
//! All flows of a firewall, as many as it has places for.
use alloc::rc::Rc;
use core::cell::RefCell;
use core::ops::Range;

use super::ends::{Ends, address, number};
use super::flow::{Flow, KINDS, Kind};
use super::hosts::{Hosts, Place, network};
use super::seen::Tcp;
use super::slots::Slots;
use super::targets::{Target, Targets};
use super::window::Windows;
use crate::carried;
use crate::flows::{At, Changes, Copied, Delta, ListId, is_older};
use crate::prelude::*;

/// The first line of flows as text: those of a firewall, and those of a balancer.
const HEAD: &str = "flowguard 1";
const BALANCED: &str = "balancer 1";
/// A flow is not evicted for another for this long, unless its host has more than its share.
const GUARANTEED_NS: u64 = 5_000_000_000;
/// A host's share of the table is this part of it: what it has beyond gives way to flows of hosts with fewer.
const SHARE: usize = 8;
/// Flows of a full table that are compared for a new one: few enough to be quick, and enough to meet one of a host
/// with more than its share.
const COMPARED: u32 = 32;
/// The step from one of them to the next, as a part of the table in 2^32: the golden ratio spreads them evenly.
const STEP: u32 = 0x9e37_79b9;

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
    /// A list for each kind.
    slots: Slots<Flow, { KINDS.len() }>,
    capacity: usize,
    /// The flows that each host began.
    hosts: Hosts,
    /// The flow that was compared last, as a part of the table in 2^32.
    compared: u32,
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
        Self {
            slots: Slots::new(timeouts_ns),
            capacity,
            hosts: Hosts::default(),
            compared: 0,
            changes: None,
            targets: None,
        }
    }

    /// How long flows of a kind are kept, by its place in `KINDS`.
    pub fn timeout_ns(&self, kind: usize) -> u64 {
        self.slots.timeout_ns(kind)
    }

    /// Changes it, also for existing flows.
    pub fn set_timeout(&mut self, kind: usize, timeout_ns: u64) {
        self.slots.set_timeout(kind, timeout_ns);
    }

    /// Sets the numbers that senders do not know.
    pub fn set_keys(&mut self, keys: [u64; 4]) {
        self.slots.set_keys(keys);
        self.hosts.set_key(keys[0] ^ keys[3]);
    }

    /// How many flows there are, and how many there may be.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Where a flow is, and whether these are the ends of its answers.
    #[inline]
    fn find(&self, ends: &Ends) -> Option<At> {
        self.slots.find(ends, 0)
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
        let flow = self.slots.get(at.slot());
        flow.is_some_and(|flow| flow.is_inbound != at.is_reply())
    }

    /// The target of the flow with these ends.
    pub fn target(&self, ends: &Ends) -> Option<Target> {
        let at = self.find(ends)?;
        self.slots.get(at.slot()).map(|flow| flow.target)
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
        let Some(flow) = self.slots.get_mut(slot) else {
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
        flow.kind = flow.kind_now();
        let (kind, target) = (flow.kind, flow.target);
        if self.slots.touch(slot, kind as usize) || has_stepped {
            self.note_change(slot);
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
    pub fn add(&mut self, flow: Flow, now_ns: u64) -> bool {
        let host = self.host(&flow);
        if self.find(&flow.ends).is_some() || !self.make_room(host, now_ns) {
            return false;
        }
        let (kind, target) = (flow.kind, flow.target);
        let Some(slot) = self.slots.insert(flow, kind as usize) else {
            return false;
        };
        self.hosts.add(host, 1);
        self.count(target, true);
        self.note_change(slot);
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
            if known.is_some_and(|slot| self.slots.get(slot).is_some_and(stays)) {
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

    /// The place of the host that began a flow: inside an address, outside a network of IPv6.
    fn host(&self, flow: &Flow) -> Place {
        let is_outside = flow.is_inbound || self.targets.is_some();
        let host = match is_outside {
            true => network(flow.ends.source),
            false => flow.ends.source,
        };
        self.hosts.place(host, is_outside.into())
    }

    /// True if there is a place for one more flow of a host, maybe that of another flow: one of a host that has more than
    /// its share and more than this one, or else the one that was silent longest, but no open connection. A host
    /// with its share gets only places of its own flows then.
    fn make_room(&mut self, host: Place, now_ns: u64) -> bool {
        if self.len() < self.capacity {
            return true;
        }
        let share = (self.capacity / SHARE).max(1) as u32;
        let own = self.hosts.get(host);
        let most = share.max(own + 1);
        let has_share = own >= share;
        let goes = self.oldest_of_some(|me, flow| me.hosts.get(me.host(flow)) > most);
        let goes = goes.or_else(|| {
            let may_go = |me: &Self, flow: &Flow| {
                let is_old = now_ns.saturating_sub(flow.heard_ns) >= GUARANTEED_NS;
                flow.kind != Kind::Open && is_old && (!has_share || me.host(flow) == host)
            };
            let mut oldest = (0..KINDS.len()).filter_map(|list| self.slots.first(list));
            let found =
                oldest.find(|slot| self.slots.get(*slot).is_some_and(|flow| may_go(self, flow)));
            found.or_else(|| has_share.then(|| self.oldest_of_some(may_go)).flatten())
        });
        if let Some(slot) = goes {
            self.remove(slot);
        }
        goes.is_some()
    }

    /// Of the next few flows that may go, one that is not an open connection before others, then the one that was silent
    /// longest.
    fn oldest_of_some(&mut self, may_go: impl Fn(&Self, &Flow) -> bool) -> Option<u32> {
        let first = self.compared;
        self.compared = first.wrapping_add(STEP.wrapping_mul(COMPARED));
        let used = u64::from(self.slots.used());
        let part = |n| u64::from(first.wrapping_add(STEP.wrapping_mul(n)));
        let slot = |n| ((part(n) * used) >> 32) as u32;
        let weigh = |slot: u32| {
            let flow = self.slots.get(slot).filter(|flow| may_go(self, flow))?;
            Some((flow.kind == Kind::Open, flow.heard_ns, slot))
        };
        let goes = (0..COMPARED).map(slot).filter_map(weigh).min();
        goes.map(|(.., slot)| slot)
    }

    /// Forgets a flow whose time is over; says whether it is.
    fn end_if_late(&mut self, slot: u32, now_ns: u64) -> bool {
        let is_late = self.slots.is_late(slot, now_ns);
        if is_late {
            self.remove(slot);
        }
        is_late
    }

    /// Forgets the flows whose time is over, at most `most` of each kind.
    pub fn reap(&mut self, most: usize, now_ns: u64) {
        for kind in 0..KINDS.len() {
            for _ in 0..most {
                match self.slots.first_late(kind, now_ns) {
                    Some(slot) => self.remove(slot),
                    None => break,
                }
            }
        }
    }

    fn remove(&mut self, slot: u32) {
        if let Some(flow) = self.slots.remove(slot) {
            self.hosts.remove(self.host(&flow), 1);
            self.count(flow.target, false);
        }
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        (0..self.slots.used()).for_each(|slot| self.remove(slot));
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
        (0..KINDS.len()).flat_map(|kind| self.slots.by_silence(kind))
    }

    /// All flows, in no order.
    pub fn iter(&self) -> impl Iterator<Item = &Flow> {
        self.slots.iter()
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
        self.slots.used()
    }

    fn heard(&self, slot: u32) -> Option<(u16, u64)> {
        let flow = self.slots.get(slot);
        flow.map(|flow| (OWNER, flow.heard_ns))
    }

    fn line(&self, slot: u32, now_ns: u64) -> String {
        let flow = self.slots.get(slot);
        flow.map_or_else(String::new, |flow| self.text(flow, now_ns))
    }

    fn changes(&mut self) -> &mut Option<Box<Changes>> {
        &mut self.changes
    }
}

fn is_ping(ends: &Ends) -> bool {
    matches!(ends.protocol, 1 | 58)
}

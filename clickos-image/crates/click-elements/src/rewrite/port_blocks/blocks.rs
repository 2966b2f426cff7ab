// SPDX-License-Identifier: Apache-2.0
//! The ports of subscribers, and the log of those in use.
use alloc::rc::{Rc, Weak};
use core::cell::RefCell;
use core::fmt::{self, Display};

use click_core::memory::has_room;
use click_core::{Limits, listing};

use super::layout::{Layout, count};
use super::subscriber::Subscriber;
use crate::flows::{Chunks, FlowId, Watch};
use crate::prelude::*;
use crate::rewrite::mapper::Map;
use crate::rewrite::pattern::{Draw, Outputs};
use crate::syslog::{MESSAGE_ROOM, Severity, Shared};

/// The rewriter's outputs for flows and answers.
const OUTPUTS: Outputs = [0, 1];
/// Subscribers that a sweep visits in one go, and the time until the next ones.
const AT_ONCE: u32 = 1024;
const PAUSE_NS: u64 = 1_000_000;
/// Time in which a full log sends some of what waits.
const LOG_PAUSE_NS: u64 = 100_000_000;
/// Time between two searches for blocks without flows.
pub const SWEEP_NS: u64 = 10_000_000_000;

/// The subscribers that have flows.
pub struct Blocks {
    pub layout: Layout,
    /// The most flows that a subscriber opens.
    most: u32,
    /// By number.
    subscribers: Chunks<Option<Box<Subscriber>>>,
    /// How many there may be; 0 until the memory has places for them.
    count: u32,
    /// The next subscriber that a sweep visits.
    next: u32,
    /// False after flows of another guest came, until a packet asks for one: the other guest may be the active one.
    forwards: bool,
    pub log: Option<Shared>,
    /// What the log has to say about blocks of the layout before, in front of all else.
    freed: Vec<Event>,
    me: Weak<RefCell<Self>>,
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
    pub fn new(layout: Layout, most: u32) -> Rc<RefCell<Self>> {
        Rc::new_cyclic(|me| {
            RefCell::new(Self {
                layout,
                most,
                subscribers: Chunks::new(),
                count: 0,
                next: 0,
                forwards: false,
                log: None,
                freed: Vec::new(),
                me: me.clone(),
            })
        })
    }

    /// Makes a place for each subscriber; `None` if the memory does not take them.
    pub fn prepare(&mut self) -> Option<()> {
        let last = u32::try_from(count(self.layout.subscribers) - 1).ok()?;
        self.subscribers.reach(last, &None)?;
        self.count = last + 1;
        Some(())
    }

    fn known(&mut self, n: u32) -> Option<&mut Subscriber> {
        if n >= self.count {
            return None;
        }
        self.subscribers[n].as_deref_mut()
    }

    /// A subscriber, who may be new; `None` if the memory takes no more.
    fn subscriber(&mut self, n: u32) -> Option<&mut Subscriber> {
        if n >= self.count {
            return None;
        }
        let place = &mut self.subscribers[n];
        if place.is_none() && !has_room(MESSAGE_ROOM + size_of::<Subscriber>()) {
            return None;
        }
        Some(place.get_or_insert_default())
    }

    /// The subscriber whose port a flow has, whether it opened the flow, and which port of its block that is.
    fn owner(&self, [there, back]: &[FlowId; 2]) -> Option<(u32, bool, Option<u32>)> {
        // a source that is not translated came from outside, whatever address it claims
        let is_inside = there.source != back.destination;
        let inside = is_inside.then(|| self.layout.subscriber(there.source));
        let (n, opened, public) = match inside.flatten() {
            Some(n) => (n, true, (back.destination, back.dport)),
            None => {
                let n = self.layout.subscriber(back.source)?;
                (n, false, (there.destination, there.dport))
            }
        };
        let (address, first) = self.layout.place(n);
        let port = u32::from(public.1.wrapping_sub(first));
        let is_own = address == public.0 && port < self.layout.block;
        Some((n, opened, is_own.then_some(port)))
    }

    fn began(&mut self, map: u16, ids: &[FlowId; 2]) -> Option<()> {
        let Some((n, opened, port)) = self.owner(ids) else {
            return Some(());
        };
        let size = self.layout.block;
        let subscriber = self.subscriber(n)?;
        if let Some(port) = port {
            subscriber.take((map, size), port)?;
        }
        subscriber.flows += 1;
        subscriber.opened += u32::from(opened);
        Some(())
    }

    fn ended(&mut self, map: u16, ids: &[FlowId; 2]) {
        let owner = self.owner(ids);
        let Some((n, opened, port)) = owner else {
            return;
        };
        if let Some(subscriber) = self.known(n) {
            if let Some(port) = port {
                subscriber.give(map, port);
            }
            subscriber.flows = subscriber.flows.saturating_sub(1);
            subscriber.opened = subscriber.opened.saturating_sub(opened.into());
        }
    }

    /// The number of what the log has written down, 0 while it cannot.
    fn era(&self) -> u32 {
        self.log.as_ref().map_or(0, |log| log.borrow().era())
    }

    /// Writes down that a block came into use, unless the log has that; false if it has no place now.
    fn begin(&mut self, n: u32) -> bool {
        let era = self.era();
        let is_new = self.known(n).is_some_and(|known| known.logged != era);
        if era == 0 || !is_new {
            return true;
        }
        let is_written = self.complete() && self.write("allocated", n);
        if let (true, Some(known)) = (is_written, self.known(n)) {
            known.logged = era;
        }
        is_written
    }

    fn write(&self, word: &'static str, subscriber: u32) -> bool {
        self.put(&self.event(word, subscriber))
    }

    fn event(&self, word: &'static str, subscriber: u32) -> Event {
        let (public, first) = self.layout.place(subscriber);
        Event {
            word,
            subscriber: self.layout.subscriber_address(subscriber),
            public,
            ports: (first, u32::from(first) + self.layout.block - 1),
        }
    }

    /// Writes what is left about the layout before; false if the log has no place now.
    fn complete(&mut self) -> bool {
        if self.era() == 0 {
            return true;
        }
        while let Some(event) = self.freed.last() {
            if !self.put(event) {
                return false;
            }
            self.freed.pop();
        }
        self.freed = Vec::new();
        true
    }

    /// True if the log has all about the layout before.
    pub fn is_complete(&self) -> bool {
        self.freed.is_empty()
    }

    fn put(&self, event: &Event) -> bool {
        let Some(log) = &self.log else {
            return true;
        };
        let mut log = log.borrow_mut();
        let has_place = log.has_place();
        if has_place {
            log.write(None, Severity::Info, "block", event);
        }
        has_place
    }

    /// Gives back what subscribers without flows have, and completes the log. Returns the time until the next call.
    pub fn sweep(&mut self) -> u64 {
        if !self.complete() {
            return LOG_PAUSE_NS;
        }
        for _ in 0..AT_ONCE {
            if self.next >= self.count {
                self.next = 0;
                return SWEEP_NS;
            }
            if !self.visit(self.next) {
                return LOG_PAUSE_NS;
            }
            self.next += 1;
        }
        PAUSE_NS
    }

    /// Frees what a subscriber without flows has, or completes the log; false if the log has no place now.
    fn visit(&mut self, n: u32) -> bool {
        let Some(known) = self.known(n) else {
            return true;
        };
        known.trim();
        let (in_use, logged) = (known.flows > 0, known.logged > 0);
        if in_use {
            return !self.forwards || self.begin(n);
        }
        if logged && self.era() != 0 && !self.write("freed", n) {
            return false;
        }
        self.subscribers[n] = None;
        true
    }

    /// Takes over what the flows do not tell. Of blocks that lie elsewhere now only the log learns that they are free.
    pub fn adopt(&mut self, old: &mut Self) {
        self.freed = core::mem::take(&mut old.freed);
        if self.layout != old.layout {
            for n in 0..old.count {
                let is_logged = old.known(n).is_some_and(|known| known.logged > 0);
                let growth = 2 * (self.freed.len() + 1) * size_of::<Event>();
                let fits =
                    self.freed.len() < self.freed.capacity() || has_room(MESSAGE_ROOM + growth);
                if is_logged && fits {
                    self.freed.push(old.event("freed", n));
                }
            }
            return;
        }
        self.forwards = old.forwards;
        for n in 0..old.count {
            let Some(before) = old.known(n) else {
                continue;
            };
            if let Some(now) = self.subscriber(n) {
                now.begun += before.begun;
                now.refused += before.refused;
                now.logged = before.logged;
            }
        }
    }

    pub fn table(&self, limits: &Limits) -> String {
        let line = |n: u32| {
            let known = self.subscribers[n].as_deref()?;
            let (public, first) = self.layout.place(n);
            let last = u32::from(first) + self.layout.block - 1;
            let (begun, refused) = (known.begun, known.refused);
            let subscriber = self.layout.subscriber_address(n);
            Some(format!(
                "{subscriber} {public} {first}-{last} {begun} {refused}\n"
            ))
        };
        listing(limits, (0..self.count).filter_map(line))
    }
}

impl Watch for RefCell<Blocks> {
    fn began(&self, map: u16, ids: &[FlowId; 2]) -> Option<()> {
        self.borrow_mut().began(map, ids)
    }

    fn ended(&self, map: u16, ids: &[FlowId; 2]) {
        self.borrow_mut().ended(map, ids);
    }
}

impl Map for Blocks {
    fn admits(&mut self, id: &FlowId) -> bool {
        self.forwards = true;
        let most = self.most;
        let subscriber = self.layout.subscriber(id.source);
        let Some(known) = subscriber.and_then(|n| self.known(n)) else {
            return true;
        };
        let has_place = known.opened < most;
        known.refused += u64::from(!has_place);
        has_place
    }

    fn rewrite(
        &mut self,
        id: FlowId,
        map: u16,
        draw: Draw<'_>,
        taken: &dyn Fn(&FlowId) -> bool,
    ) -> Option<(FlowId, Outputs)> {
        let n = self.layout.subscriber(id.source)?;
        let (source, first) = self.layout.place(n);
        let block = (map, self.layout.block);
        let subscriber = self.subscriber(n)?;
        let found = subscriber.find(block, FlowId { source, ..id }, first, draw, taken);
        subscriber.refused += u64::from(found.is_none());
        let sport = first + found?;
        subscriber.begun += 1;
        self.begin(n);
        Some((
            FlowId {
                source,
                sport,
                ..id
            },
            OUTPUTS,
        ))
    }

    fn gives(&self, [there, back]: &[FlowId; 2], is_own: bool) -> Option<bool> {
        let (inside, public, port) = match is_own {
            true => (there.source, back.destination, back.dport),
            false => (back.source, there.destination, there.dport),
        };
        let owner = self.layout.owner(public, port)?;
        Some(owner == inside)
    }

    fn took_over(&mut self) {
        self.forwards = false;
    }

    fn watch(&self) -> Option<Rc<dyn Watch>> {
        let me: Rc<dyn Watch> = self.me.upgrade()?;
        Some(me)
    }

    fn beyond(&self, outputs: usize) -> Option<u16> {
        OUTPUTS
            .into_iter()
            .find(|port| usize::from(*port) >= outputs)
    }
}

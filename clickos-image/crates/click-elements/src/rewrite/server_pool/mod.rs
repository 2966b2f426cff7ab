// SPDX-License-Identifier: Apache-2.0
//! The element that spreads flows over servers that answer.
mod probe;
mod servers;

use alloc::rc::Rc;
use core::cell::RefCell;

use probe::Prober;
use servers::{Addresses, Servers};

use crate::prelude::*;
use crate::rewrite::mapper::Shared;

const SECOND_NS: u64 = 1_000_000_000;
const SHORTEST_NS: u64 = 10_000_000;

/// Builds the element.
pub fn build(a: &mut Args<'_>) -> Built {
    let (source, port) = (a.need("SRC"), a.or("PORT", 0u16));
    let interval = a.or("INTERVAL", Span { ns: SECOND_NS });
    let failures = a.or("FAILURES", 3u32)?;
    if failures == 0 {
        a.error("FAILURES", "expected at least 1, got 0");
    }
    let mut addresses = Addresses::default();
    for text in a.rest().to_vec() {
        if let Some(Err(message)) = a.parse("SERVER", &text).map(|server| addresses.add(server)) {
            a.error("SERVER", message);
        }
    }
    let mut servers = Servers {
        all: Vec::new(),
        draining: Addresses::default(),
        begin_up: a.outputs() == 0,
    };
    servers.set(&addresses);
    Some(Box::new(ServerPool {
        prober: Prober {
            source: source?,
            port: port?,
        },
        interval_ns: interval?.ns.max(SHORTEST_NS),
        failures,
        servers: Rc::new(RefCell::new(servers)),
    }))
}

/// The element.
pub struct ServerPool {
    prober: Prober,
    interval_ns: u64,
    failures: u32,
    servers: Rc<RefCell<Servers>>,
}

impl ServerPool {
    /// The decider for rewriters.
    pub fn shared(&self) -> Shared {
        self.servers.clone()
    }

    pub fn set_servers(&mut self, servers: Addresses) {
        self.servers.borrow_mut().set(&servers);
    }

    pub fn set_draining(&mut self, draining: Addresses) {
        self.servers.borrow_mut().draining = draining;
    }

    pub fn servers_text(&self) -> String {
        self.servers.borrow().addresses().text()
    }

    pub fn draining_text(&self) -> String {
        self.servers.borrow().draining.text()
    }

    pub fn changes_text(&self, view: &View<'_>) -> Text {
        self.servers.borrow_mut().changes(view)
    }

    /// Checks which servers answered the other guest of a pair.
    pub fn merge(&self, _view: &View<'_>, value: &str) -> Result<Change, HandlerError> {
        let answered = Servers::parse(value)?;
        on_write(self, move |me, _| me.servers.borrow_mut().merge(&answered))
    }

    pub fn status_text(&self) -> String {
        self.servers.borrow().status()
    }

    /// Counts the last probe of a server if it has no answer; returns the number of the next one.
    fn next_probe(&self, ctx: &mut Context<'_>, n: usize) -> Option<(Ipv4Addr, u32)> {
        let mut servers = self.servers.borrow_mut();
        let server = servers.all.get_mut(n)?;
        if server.awaited.is_some() {
            server.misses = server.misses.saturating_add(1);
            server.up &= server.misses < self.failures;
        }
        let number = ctx.random() as u32;
        server.awaited = Some(number);
        Some((server.address, number))
    }

    /// Takes a packet for SRC; returns what its sender gets.
    fn receive(&self, ctx: &mut Context<'_>, packet: &Packet) -> Option<Packet> {
        let answer = self.prober.answer(packet)?;
        let mut servers = self.servers.borrow_mut();
        let server = servers
            .all
            .iter_mut()
            .find(|s| s.address == answer.server && s.awaited == Some(answer.number))?;
        server.answered(true);
        self.prober.segment(ctx, answer.server, answer.reset?)
    }
}

impl Element for ServerPool {
    fn initialize(&mut self, ctx: &mut Context<'_>) -> Result<(), String> {
        if ctx.outputs() > 0 {
            ctx.set_timer(ctx.now_ns());
        }
        Ok(())
    }

    fn run_timer(&mut self, ctx: &mut Context<'_>) {
        let mut n = 0;
        while let Some((server, number)) = self.next_probe(ctx, n) {
            if let Some(packet) = self.prober.probe(ctx, server, number) {
                ctx.push_one(0, packet);
            }
            n += 1;
        }
        ctx.set_timer(ctx.now_ns().saturating_add(self.interval_ns));
    }

    fn push(&mut self, ctx: &mut Context<'_>, _port: usize, mut batch: Batch) {
        for packet in batch.drain_front(usize::MAX) {
            let reset = self.receive(ctx, &packet);
            if let Some(reset) = reset.filter(|_| ctx.outputs() > 0) {
                ctx.push_one(0, reset);
            }
        }
        ctx.recycle(batch);
    }

    /// Servers keep their states. Without a SERVER of its own, the element takes over all of the old one's.
    fn take_state(&mut self, _ctx: &mut Context<'_>, old: &mut dyn Element) {
        let Some(old) = old.as_any_mut().downcast_mut::<Self>() else {
            return;
        };
        let (new, mut old) = (&mut *self.servers.borrow_mut(), old.servers.borrow_mut());
        let wanted = match new.all.is_empty() {
            true => old.addresses(),
            false => new.addresses(),
        };
        new.draining = core::mem::take(&mut old.draining);
        new.all = core::mem::take(&mut old.all);
        for server in &mut new.all {
            // answers on their way belong to no probe of this element
            (server.up, server.awaited) = (server.up || new.begin_up, None);
        }
        new.set(&wanted);
    }
}

// SPDX-License-Identifier: Apache-2.0
//! The element that spreads flows over servers that answer.
mod http;
mod probe;
mod servers;

use alloc::rc::Rc;
use core::cell::RefCell;
use core::net::{IpAddr, Ipv6Addr};

use http::{Expected, Http, Path};
use probe::Prober;
use servers::{Addresses, Outcome, Probe};

pub use servers::{Served, Servers};

use click_core::class::Arg;

use crate::ip6;
use crate::prelude::*;
use crate::rewrite::mapper::Shared;

const SECOND_NS: u64 = 1_000_000_000;
const SHORTEST_NS: u64 = 10_000_000;

/// Arguments for IPv6 and HTTP.
pub const MORE: [Arg; 3] = [keyword("SRC6"), keyword("PATH"), keyword("STATUS")];

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
        let added = servers::address(&text, a.arg_context()).and_then(|s| addresses.add(s));
        if let Err(message) = added {
            a.error("SERVER", message);
        }
    }
    let (source6, http) = more(a)?;
    let prober = Prober {
        source: source?,
        source6,
        port: port?,
        http,
    };
    if let Some(server) = addresses.0.iter().find(|s| !prober.reaches(**s)) {
        a.error("SERVER", no_source(*server));
    }
    let mut servers = Servers::new(a.outputs() == 0);
    servers.set(&addresses);
    Some(Box::new(ServerPool {
        prober,
        interval_ns: interval?.ns.max(SHORTEST_NS),
        failures,
        servers: Rc::new(RefCell::new(servers)),
    }))
}

fn no_source(server: IpAddr) -> String {
    format!("server {server}: no address of IPv6 to probe it from, expected SRC6")
}

/// Reads the arguments for IPv6 and HTTP.
fn more(a: &mut Args<'_>) -> Option<(Ipv6Addr, Http)> {
    let mut http = Http::new("");
    if !cfg!(services) {
        return Some((Ipv6Addr::UNSPECIFIED, http));
    }
    let source6 = a.or("SRC6", ip6::Address(Ipv6Addr::UNSPECIFIED));
    let (path, expected) = (a.or("PATH", Path::default()), a.or("STATUS", http.expected));
    (http.path, http.expected) = (path?, expected?);
    Some((source6?.0, http))
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

    /// The servers, for a balancer of IPv6.
    pub fn servers(&self) -> Rc<RefCell<Servers>> {
        self.servers.clone()
    }

    pub fn path(&self) -> &str {
        &self.prober.http.path.0
    }

    pub fn set_path(&mut self, path: Path) {
        self.prober.http.path = path;
    }

    pub fn expected(&self) -> Expected {
        self.prober.http.expected
    }

    pub fn set_expected(&mut self, expected: Expected) {
        self.prober.http.expected = expected;
    }

    pub fn statistics_text(&self) -> String {
        self.servers.borrow().statistics()
    }

    /// Checks and takes the servers that a handler gets.
    pub fn write_servers(&self, view: &View<'_>, value: &str) -> Result<Change, HandlerError> {
        let addresses: Addresses = view.parse(value)?;
        let unreached = addresses.0.iter().find(|s| !self.prober.reaches(**s));
        if let Some(server) = unreached {
            return Err(HandlerError::rejected(no_source(*server)));
        }
        on_write(self, move |me, _| me.servers.borrow_mut().set(&addresses))
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

    /// Counts the last probe of a server if it has no answer; returns the server, the last probe and the number of the
    /// next one.
    fn next_probe(&self, ctx: &mut Context<'_>, n: usize) -> Option<(IpAddr, Option<Probe>, u32)> {
        let mut servers = self.servers.borrow_mut();
        let server = servers.all.get_mut(n)?;
        if let Some(probe) = server.awaited {
            server.counts.last = probe.failed.unwrap_or(Outcome::Silence);
            server.misses = server.misses.saturating_add(1);
            server.up &= server.misses < self.failures;
            server.counts.failures += 1;
        }
        let number = ctx.random() as u32;
        let probe = Probe {
            number,
            sent_ns: ctx.now_ns(),
            asked: None,
            failed: None,
        };
        server.counts.probes += 1;
        Some((server.address, server.awaited.replace(probe), number))
    }

    /// Takes a packet for SRC; returns what its sender gets.
    fn receive(&self, ctx: &mut Context<'_>, packet: &Packet) -> Option<Packet> {
        let (address, said) = self.prober.read(packet)?;
        let mut servers = self.servers.borrow_mut();
        let server = servers.all.iter_mut().find(|s| s.address == address)?;
        let probe = server.awaited.as_mut()?;
        let reply = self.prober.hear(address, probe, &said)?;
        probe.asked = reply.asked;
        let passed_ns = ctx.now_ns().saturating_sub(probe.sent_ns);
        match reply.outcome {
            Some(Outcome::Answered) => {
                server.counts.last = Outcome::Answered;
                server.counts.answer_ns = passed_ns;
                server.answered(true);
            }
            failed => probe.failed = failed.or(probe.failed),
        }
        let (segment, words) = reply.segment?;
        self.prober.segment(ctx, address, segment, &words)
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
        while let Some((server, last, number)) = self.next_probe(ctx, n) {
            let ends = last.and_then(|last| self.prober.give_up(&last));
            for reset in ends.into_iter().flatten() {
                if let Some(packet) = self.prober.segment(ctx, server, reset, "") {
                    ctx.push_one(0, packet);
                }
            }
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

    /// Servers keep their states. Without a SERVER of its own, the element takes over those of the old one that it
    /// reaches; without a PATH, what the old one asks.
    fn take_state(&mut self, _ctx: &mut Context<'_>, old: &mut dyn Element) {
        let Some(old) = old.as_any_mut().downcast_mut::<Self>() else {
            return;
        };
        if cfg!(services) && !self.prober.http.is_used() {
            core::mem::swap(&mut self.prober.http, &mut old.prober.http);
        }
        let (new, mut old) = (&mut *self.servers.borrow_mut(), old.servers.borrow_mut());
        let mut wanted = match new.all.is_empty() {
            true => old.addresses(),
            false => new.addresses(),
        };
        wanted.0.retain(|server| self.prober.reaches(*server));
        new.draining = core::mem::take(&mut old.draining);
        new.all = core::mem::take(&mut old.all);
        for server in &mut new.all {
            // answers on their way belong to no probe of this element
            (server.up, server.awaited) = (server.up || new.begin_up, None);
        }
        new.set(&wanted);
    }
}

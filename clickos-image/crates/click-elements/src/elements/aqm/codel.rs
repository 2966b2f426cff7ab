// SPDX-License-Identifier: Apache-2.0
//! Drops packets that waited too long, more and more of them until they wait less (CoDel; Nichols, Jacobson 2012).
//!
//! # Synopsis
//! `CoDel([TARGET, INTERVAL, QUEUES])`: when all packets have waited TARGET (default 5ms) or more for two times INTERVAL (default
//! 100ms), one goes, and then one each INTERVAL divided by the square root of their number, until one has waited less. A packet
//! waits since the time of its first timestamp annotation (`SetTimestamp(FIRST true)` in front of the queue); one without is never
//! dropped. QUEUES names the queues of `stats` (default: where packets come from). A bare number is seconds.
//! # Ports
//! 1/1, pull.
//! # Handlers
//! * `codel_target`, `codel_interval` (read, write): the arguments, in seconds. `drops` (read): packets dropped.
//! * `queues` (read): names, one a line. `stats` (read): length and drops.
//! # Differences from Click
//! A bare number is seconds, as in Click's code (its documentation says milliseconds).
//! # Example
//! `FromDevice(0) -> SetTimestamp(FIRST true) -> Queue(1000) -> CoDel -> ToDevice(1);`
use crate::prelude::*;
use crate::standard::queues::Queues;
use crate::standard::time::Time;

pub static ELEMENT: Class = Class {
    name: "CoDel",
    processing: "l/l",
    args: &[optional("TARGET"), optional("INTERVAL"), keyword("QUEUES")],
    handlers: &[
        read_write(
            "codel_target",
            |me: &mut CoDel, _| seconds(me.target_ns),
            set!(|me, target: Span, _| me.target_ns = target.ns),
        ),
        read_write(
            "codel_interval",
            |me, _| seconds(me.interval_ns),
            set!(|me, interval: Span, _| me.interval_ns = interval.ns),
        ),
        read("drops", |me, _| text(me.drops)),
        read("queues", |me, view| Ok(me.queues.list(&view.ctx()))),
        read("stats", |me, view| {
            let length = me.queues.length(&view.ctx());
            text(format!("{length} current queue\n{} drops\n", me.drops))
        }),
    ],
    build: |a| {
        let (target, interval) = (
            a.or("TARGET", Span { ns: 5_000_000 }),
            a.or("INTERVAL", Span { ns: 100_000_000 }),
        );
        let queues = Queues::argument(a);
        Some(Box::new(CoDel {
            target_ns: target?.ns,
            interval_ns: interval?.ns,
            queues: queues?,
            state: State::default(),
            drops: 0,
        }))
    },
    live: true,
    ..Class::DEFAULT
};

/// The measured state of the delay.
#[derive(Default)]
struct State {
    /// When it will have been too long for an interval, if it is too long.
    late_from_ns: Option<u64>,
    /// The dropping state, the time of the next drop and the count of drops.
    dropping: bool,
    next_ns: u64,
    count: u64,
}

struct CoDel {
    target_ns: u64,
    interval_ns: u64,
    queues: Queues,
    state: State,
    drops: u64,
}

/// A packet from the queue.
struct Head {
    packet: Packet,
    /// True if it may be dropped: it waited too long, and so did those before.
    late: bool,
}

impl CoDel {
    fn head(&mut self, ctx: &mut Context<'_>) -> Option<Head> {
        let Some(packet) = ctx.pull_one(0) else {
            self.state.late_from_ns = None;
            return None;
        };
        let since = Time::first_of(&packet);
        if since.is_unset() {
            return Some(Head {
                packet,
                late: false,
            });
        }
        let (now_ns, waited_ns) = (ctx.now_ns(), Time::now(ctx).minus(since).0);
        let long = u64::try_from(waited_ns).is_ok_and(|ns| ns >= self.target_ns);
        let from_ns = self.state.late_from_ns.filter(|_| long);
        let late = from_ns.is_some_and(|from_ns| now_ns >= from_ns);
        let next = from_ns.unwrap_or_else(|| now_ns.saturating_add(self.interval_ns));
        self.state.late_from_ns = long.then_some(next);
        Some(Head { packet, late })
    }

    /// When the packet after one at `ns` goes.
    fn law(&self, ns: u64) -> u64 {
        let scaled = self.interval_ns.saturating_mul(16);
        ns.saturating_add(scaled / (self.state.count.saturating_mul(256)).isqrt().max(1))
    }

    /// Drops `head` and takes the next one.
    fn drop_one(&mut self, ctx: &mut Context<'_>, head: Head) -> Option<Head> {
        drop(head);
        self.drops += 1;
        self.head(ctx)
    }

    /// Drops what is due, until a packet has waited less.
    fn go_on(&mut self, ctx: &mut Context<'_>, mut head: Head) -> Option<Head> {
        while head.late && ctx.now_ns() >= self.state.next_ns {
            self.state.count += 1;
            let next = self.drop_one(ctx, head);
            self.state.dropping = next.as_ref().is_some_and(|next| next.late);
            head = next?;
            if head.late {
                self.state.next_ns = self.law(self.state.next_ns);
            }
        }
        self.state.dropping &= head.late;
        Some(head)
    }

    /// Drops the first packet, if packets were dropped lately or it is high time. Lately means that it continues nearly
    /// where that ended.
    fn begin(&mut self, ctx: &mut Context<'_>, head: Head) -> Option<Head> {
        let now_ns = ctx.now_ns();
        let within = |ns: u64| now_ns.saturating_sub(ns) < self.interval_ns;
        let again = within(self.state.next_ns);
        if !again && self.state.late_from_ns.is_none_or(within) {
            return Some(head);
        }
        self.state.count = match self.state.count {
            before @ 3.. if again => before - 2,
            _ => 1,
        };
        self.state.dropping = true;
        self.state.next_ns = self.law(now_ns);
        self.drop_one(ctx, head)
    }

    fn next(&mut self, ctx: &mut Context<'_>) -> Option<Packet> {
        let head = match self.head(ctx) {
            Some(head) if self.state.dropping => self.go_on(ctx, head),
            Some(head) if head.late => self.begin(ctx, head),
            Some(head) => Some(head),
            None => {
                self.state.dropping = false;
                None
            }
        };
        head.map(|head| head.packet)
    }
}

fn seconds(ns: u64) -> Text {
    text(ns as f64 / 1e9)
}

impl Element for CoDel {
    fn initialize(&mut self, ctx: &mut Context<'_>) -> Result<(), String> {
        self.queues.find(ctx)
    }

    fn pull(&mut self, ctx: &mut Context<'_>, _port: usize, max: usize) -> Batch {
        let mut batch = ctx.batch();
        while batch.len() < max {
            let Some(packet) = self.next(ctx) else { break };
            batch.push_back(packet);
        }
        batch
    }

    fn take_state(&mut self, ctx: &mut Context<'_>, old: &mut dyn Element) {
        if let Some(old) = replaced::<Self>(ctx, old) {
            core::mem::swap(&mut self.state, &mut old.state);
            self.drops = old.drops;
        }
    }
}

// SPDX-License-Identifier: Apache-2.0
//! Behaves like a serial link: packets arrive after its latency and the time they take on it.
//!
//! # Synopsis
//! `LinkUnqueue(LATENCY, BANDWIDTH)`: LATENCY in seconds, BANDWIDTH in bytes a second or with a unit such as
//! `384kbps`, at least 100 bytes a second; both mandatory. The timestamp annotation becomes the time of arrival.
//! # Ports
//! 1/1, pull to push. It pulls only what finds room on the link.
//! # Handlers
//! * `latency`, `bandwidth` (read, write): the arguments; a change drops what is on the link.
//! * `size` (read): packets on the link. `reset` (write): drops them.
//! # Differences from Click
//! At most 32 packets enter the link at a time.
//! # Example
//! `FromDevice(0) -> Queue -> LinkUnqueue(20ms, 2Mbps) -> ToDevice(1);`
use click_core::anno;

use crate::prelude::*;
use crate::standard::bandwidth::Bandwidth;
use crate::standard::delay::BURST;
use crate::standard::interval::interval;

pub static ELEMENT: Class = Class {
    name: "LinkUnqueue",
    processing: "l/h",
    args: &[mandatory("LATENCY"), mandatory("BANDWIDTH")],
    handlers: &[
        read_write(
            "latency",
            |me: &mut LinkUnqueue, _| text(interval(me.latency)),
            set!(|me, latency, ctx| {
                me.latency = latency;
                me.reset(ctx);
            }),
        ),
        read_write(
            "bandwidth",
            |me, _| text(me.bandwidth.0),
            LinkUnqueue::set_bandwidth,
        ),
        read("size", |me, _| text(me.link.len())),
        command("reset", run!(|me, ctx| me.reset(ctx))),
    ],
    build: |a| {
        let (latency, bandwidth) = (a.need("LATENCY"), a.need("BANDWIDTH"));
        let (latency, bandwidth) = (latency?, bandwidth?);
        if let Err(message) = check(bandwidth) {
            a.error("BANDWIDTH", message);
        }
        Some(Box::new(LinkUnqueue {
            latency,
            bandwidth,
            link: Batch::new(),
            last_ns: 0,
            back_to_back: false,
        }))
    },
    task: true,
    ..Class::DEFAULT
};

const MIN: Bandwidth = Bandwidth(100);

fn check(bandwidth: Bandwidth) -> Result<(), String> {
    if bandwidth >= MIN {
        return Ok(());
    }
    let (got, least) = (bandwidth.0, MIN.0);
    Err(format!(
        "{got} bytes a second are too few, the least is {least}"
    ))
}

struct LinkUnqueue {
    latency: Span,
    bandwidth: Bandwidth,
    /// In the order of arrival.
    link: Batch,
    /// When the last of them arrives.
    last_ns: u64,
    /// True if the next packet follows the last without a gap.
    back_to_back: bool,
}

impl LinkUnqueue {
    /// How long a packet takes on the link.
    fn duration_ns(&self, packet: &Packet) -> u64 {
        let bytes = packet.len() as u64 + u64::from(packet.anno().u32(anno::EXTRA_LENGTH));
        bytes * 1_000_000_000 / self.bandwidth.0
    }

    /// Puts packets on the link while there is room: as long as the last one is still leaving.
    fn fill(&mut self, ctx: &mut Context<'_>) -> usize {
        let start = ctx.now_ns().saturating_add(self.latency.ns);
        let mut count = 0;
        while count < BURST && (self.link.is_empty() || self.last_ns <= start) {
            let Some(mut packet) = ctx.pull_one(0) else {
                self.back_to_back = false;
                break;
            };
            let follows = self.back_to_back && !self.link.is_empty();
            let begin = if follows { self.last_ns } else { start };
            self.last_ns = begin.saturating_add(self.duration_ns(&packet));
            packet.set_timestamp_ns(self.last_ns);
            self.link.push_back(packet);
            self.back_to_back = true;
            count += 1;
        }
        count
    }

    /// Sends on what has arrived.
    fn deliver(&mut self, ctx: &mut Context<'_>) -> usize {
        let now = ctx.now_ns();
        let arrived = self.link.iter().take_while(|p| p.timestamp_ns() <= now);
        let count = arrived.count();
        let mut batch = ctx.batch();
        batch.extend(self.link.drain_front(count));
        ctx.push(0, batch);
        count
    }

    /// Wakes up when a packet arrives, or when there is room for another.
    fn wait(&self, ctx: &mut Context<'_>) {
        let Some(first) = self.link.front().map(Packet::timestamp_ns) else {
            if ctx.readable(0) {
                ctx.schedule();
            }
            return;
        };
        let room = self.last_ns.saturating_sub(self.latency.ns);
        let next = if ctx.readable(0) {
            first.min(room)
        } else {
            first
        };
        // with room and packets the task continues, but not before time has passed
        ctx.set_timer(next.max(ctx.now_ns() + 1));
    }

    fn reset(&mut self, ctx: &mut Context<'_>) {
        self.link.clear();
        self.back_to_back = false;
        ctx.clear_timer();
        ctx.schedule();
    }
}

impl LinkUnqueue {
    fn set_bandwidth(&self, view: &View<'_>, value: &str) -> Result<Change, HandlerError> {
        let bandwidth = view.parse(value)?;
        check(bandwidth).map_err(HandlerError::rejected)?;
        Ok(Change::of(move |me: &mut Self, ctx| {
            me.bandwidth = bandwidth;
            me.reset(ctx);
        }))
    }
}

impl Element for LinkUnqueue {
    fn initialize(&mut self, ctx: &mut Context<'_>) -> Result<(), String> {
        ctx.schedule();
        Ok(())
    }

    fn run_task(&mut self, ctx: &mut Context<'_>) -> bool {
        let pulled = self.fill(ctx);
        let worked = pulled + self.deliver(ctx) > 0;
        if pulled == BURST {
            ctx.schedule();
        } else {
            self.wait(ctx);
        }
        worked
    }

    fn run_timer(&mut self, ctx: &mut Context<'_>) {
        ctx.schedule();
    }
}

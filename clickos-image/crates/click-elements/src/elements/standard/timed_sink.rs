// SPDX-License-Identifier: Apache-2.0
//! Pulls a packet now and then and drops it.
//!
//! # Synopsis
//! `TimedSink([INTERVAL])`: every INTERVAL seconds (default 0.5, at least 1 ms).
//! # Ports
//! 1/0, pull.
//! # Handlers
//! * `interval` (read, write): INTERVAL, after the next packet.
//! # Differences from Click
//! Intervals are at least 1 ms, and late events are not made up for.
//! # Example
//! `FromDevice(0) -> Queue -> TimedSink(0.1);`
use crate::prelude::*;
use crate::standard::interval::{Interval, interval};

pub static ELEMENT: Class = Class {
    name: "TimedSink",
    ports: "1/0",
    processing: "l/l",
    args: &[optional("INTERVAL")],
    handlers: &[read_write(
        "interval",
        |me: &mut TimedSink, _| text(interval(me.interval)),
        set!(|me, Interval(interval), _| {
            me.interval = interval;
        }),
    )],
    build: |a| {
        let Interval(interval) = a.or("INTERVAL", Interval::HALF_SECOND)?;
        Some(Box::new(TimedSink {
            interval,
            next_ns: 0,
        }))
    },
    ..Class::DEFAULT
};

struct TimedSink {
    interval: Span,
    next_ns: u64,
}

impl TimedSink {
    fn set_timer(&mut self, ctx: &mut Context<'_>) {
        let next = self.next_ns.saturating_add(self.interval.ns);
        self.next_ns = next.max(ctx.now_ns());
        ctx.set_timer(self.next_ns);
    }
}

impl Element for TimedSink {
    fn initialize(&mut self, ctx: &mut Context<'_>) -> Result<(), String> {
        self.next_ns = ctx.now_ns();
        self.set_timer(ctx);
        Ok(())
    }

    fn run_timer(&mut self, ctx: &mut Context<'_>) {
        let batch = ctx.pull(0, 1);
        ctx.recycle(batch);
        self.set_timer(ctx);
    }
}

// SPDX-License-Identifier: Apache-2.0
//! Makes packets as fast as they are taken.
//!
//! # Synopsis
//! `InfiniteSource([DATA, LIMIT, BURST, ACTIVE, LENGTH, STOP, TIMESTAMP, END_CALL])`: packets with content DATA (default
//! 69 bytes) cut to LENGTH or repeated up to it; at most LIMIT (default -1: no limit), BURST (default 1)
//! each time, only while ACTIVE (default true). With STOP the router stops when another one is wanted.
//! TIMESTAMP (default true) sets the timestamp annotation.
//! END_CALL (`HANDLER VALUE`) is written then, too.
//! # Ports
//! 0/1, agnostic. It rests while a queue it pushes to is full.
//! # Handlers
//! * `count` (read): packets made. `reset` (write): sets it to 0, so that LIMIT more are made.
//! * `data`, `length`, `limit`, `burst`, `active` (read, write): the arguments; `datasize` is `length`,
//!   `burstsize` is `burst`.
//! # Differences from Click
//! Default packets hold 69 letters; BANDWIDTH is missing.
//! # Example
//! `InfiniteSource(LENGTH 60, LIMIT 1000, STOP true) -> Counter -> Discard;`
use crate::handler_call::HandlerCall;
use crate::prelude::*;
use crate::standard::default_data;

pub static ELEMENT: Class = Class {
    name: "InfiniteSource",
    ports: "0/1",
    args: &[
        optional("DATA"),
        optional("LIMIT"),
        optional("BURST"),
        optional("ACTIVE"),
        keyword("LENGTH"),
        keyword("STOP"),
        keyword("TIMESTAMP"),
        keyword("END_CALL"),
    ],
    handlers: &[
        read("count", |me: &mut InfiniteSource, _| text(me.count)),
        command(
            "reset",
            run!(|me, ctx| {
                me.count = 0;
                me.go_on(ctx);
            }),
        ),
        read_write(
            "data",
            |me, _| text(String::from_utf8_lossy(&me.data)),
            set!(|me, Bytes(data), ctx| {
                me.data = data;
                me.go_on(ctx);
            }),
        ),
        read_write(
            "length",
            |me, _| text(me.length),
            set!(|me, length, ctx| {
                me.length = length;
                me.go_on(ctx);
            }),
        ),
        read_write(
            "datasize",
            |me, _| text(me.length),
            set!(|me, length, ctx| {
                me.length = length;
                me.go_on(ctx);
            }),
        ),
        read_write(
            "limit",
            |me, _| text(me.limit),
            set!(|me, limit, ctx| {
                me.limit = limit;
                me.go_on(ctx);
            }),
        ),
        read_write(
            "burst",
            |me, _| text(me.burst),
            set!(|me, burst, ctx| {
                me.burst = burst;
                me.go_on(ctx);
            }),
        ),
        read_write(
            "burstsize",
            |me, _| text(me.burst),
            set!(|me, burst, ctx| {
                me.burst = burst;
                me.go_on(ctx);
            }),
        ),
        read_write(
            "active",
            |me, _| text(me.active),
            set!(|me, active, ctx| {
                me.active = active;
                me.go_on(ctx);
            }),
        ),
    ],
    build: |a| {
        let (data, limit, burst) = (
            a.or("DATA", default_data()),
            a.or("LIMIT", -1i64),
            a.or("BURST", 1usize),
        );
        let (active, length) = (a.or("ACTIVE", true), a.or("LENGTH", -1i64));
        let (stop, timestamp) = (a.or("STOP", false), a.or("TIMESTAMP", true));
        let end_call = a.opt("END_CALL");
        let mut source = InfiniteSource {
            data: data?.0,
            length: length?,
            limit: limit?,
            burst: burst?,
            active: active?,
            stop: stop?,
            timestamp: timestamp?,
            end_call: end_call?,
            content: Vec::new(),
            made: None,
            count: 0,
        };
        source.fill();
        Some(Box::new(source))
    },
    task: true,
    live: true,
    ..Class::DEFAULT
};

struct InfiniteSource {
    data: Vec<u8>,
    length: i64,
    limit: i64,
    burst: usize,
    active: bool,
    stop: bool,
    timestamp: bool,
    end_call: Option<HandlerCall>,
    content: Vec<u8>,
    /// The packet that the element copies.
    made: Option<Packet>,
    count: u64,
}

impl InfiniteSource {
    fn fill(&mut self) {
        self.made = None;
        self.content.clone_from(&self.data);
        if let Ok(length) = usize::try_from(self.length) {
            let length = length.min(click_core::MAX_PACKET);
            self.content = match self.data.is_empty() {
                true => vec![0; length],
                false => self.data.iter().copied().cycle().take(length).collect(),
            };
        }
    }

    /// Packets until LIMIT is reached.
    fn left(&self) -> usize {
        let Ok(limit) = u64::try_from(self.limit) else {
            return usize::MAX;
        };
        usize::try_from(limit.saturating_sub(self.count)).unwrap_or(usize::MAX)
    }

    /// Continues if there are packets to make.
    fn wake(&mut self, ctx: &mut Context<'_>) {
        if !self.active || self.is_exhausted() {
            return;
        }
        if ctx.output_is_push(0) {
            ctx.schedule();
        } else {
            ctx.set_readable(true);
        }
    }

    fn make(&mut self, ctx: &mut Context<'_>, most: usize) -> Batch {
        let mut batch = ctx.batch();
        let timestamp_ns = if self.timestamp { ctx.now_ns() } else { 0 };
        let pool = ctx.pool();
        if self.made.is_none() {
            self.made = pool.packet_from(&self.content);
        }
        if let Some(made) = &mut self.made {
            if made.timestamp_ns() != timestamp_ns {
                made.set_timestamp_ns(timestamp_ns);
            }
            pool.repeat(made, most, &mut batch);
        }
        self.count += batch.len() as u64;
        batch
    }
}

impl InfiniteSource {
    fn is_exhausted(&self) -> bool {
        u64::try_from(self.limit).is_ok_and(|limit| self.count >= limit)
    }

    /// A packet is wanted, but LIMIT is reached.
    fn end(&mut self, ctx: &mut Context<'_>) {
        if let Some(call) = self.end_call.clone() {
            call.make_later(ctx);
        }
        if self.stop {
            ctx.stop();
        }
    }
}

impl InfiniteSource {
    /// Continues after a handler's change, with other packets or more of them.
    fn go_on(&mut self, ctx: &mut Context<'_>) {
        self.fill();
        self.wake(ctx);
    }
}

impl Element for InfiniteSource {
    fn initialize(&mut self, ctx: &mut Context<'_>) -> Result<(), String> {
        self.end_call.iter().try_for_each(|c| c.check(ctx))?;
        if ctx.output_is_push(0) {
            ctx.schedule();
        }
        ctx.set_readable(self.active);
        Ok(())
    }

    fn run_task(&mut self, ctx: &mut Context<'_>) -> bool {
        if !self.active || !ctx.writable(0) {
            return false;
        }
        if self.is_exhausted() {
            self.end(ctx);
            return false;
        }
        let turns = ctx.batch_runs(self.burst, |_| self.left());
        let batch = self.make(ctx, self.left().min(self.burst.saturating_mul(turns)));
        let worked = !batch.is_empty();
        ctx.push(0, batch);
        ctx.schedule();
        worked
    }

    fn pull(&mut self, ctx: &mut Context<'_>, _port: usize, max: usize) -> Batch {
        let exhausted = self.is_exhausted();
        if exhausted && self.active {
            self.end(ctx);
        }
        if exhausted || !self.active {
            ctx.set_readable(false);
            return ctx.batch();
        }
        let most = self.left().min(max);
        self.make(ctx, most)
    }

    fn steady_runs(&self) -> usize {
        match self.active && self.burst == 1 {
            true => self.left(),
            false => 0,
        }
    }

    fn signal(&self) -> Signal {
        Signal::Own
    }
}

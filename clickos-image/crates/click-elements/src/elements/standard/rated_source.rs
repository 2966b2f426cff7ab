// SPDX-License-Identifier: Apache-2.0
//! Makes packets at a rate.
//!
//! # Synopsis
//! `RatedSource([DATA, RATE, LIMIT, ACTIVE, LENGTH, STOP])`: RATE packets a second (default 10) with content
//! DATA (default 69 bytes) cut or filled with zeros to LENGTH; at most LIMIT (default -1: no limit),
//! only while ACTIVE (default true). With STOP the router stops after the last one.
//! # Ports
//! 0/1, agnostic. It tells those that pull when the next packet is due.
//! # Handlers
//! * `count` (read): packets made. `reset` (write): sets it to 0, so that LIMIT more are made.
//! * `data`, `length`, `rate`, `limit`, `active` (read, write): the arguments; `datasize` is `length`.
//! # Differences from Click
//! Default packets hold 69 letters; BANDWIDTH is missing. Where packets are pulled, it reports when
//! its next packet is due.
//! # Example
//! `RatedSource(RATE 100, LIMIT 500) -> ToDevice(0);`
use crate::prelude::*;
use crate::standard::default_data;

pub static ELEMENT: Class = Class {
    name: "RatedSource",
    ports: "0/1",
    // as Click's, which has one
    task: true,
    args: &[
        optional("DATA"),
        optional("RATE"),
        optional("LIMIT"),
        optional("ACTIVE"),
        keyword("LENGTH"),
        keyword("STOP"),
    ],
    handlers: &[
        read("count", |me: &mut RatedSource, _| text(me.count)),
        command(
            "reset",
            run!(|me, ctx| {
                me.count = 0;
                me.start(ctx);
            }),
        ),
        read_write(
            "data",
            |me, _| text(String::from_utf8_lossy(&me.data)),
            set!(|me, data: Bytes, _| me.data = data.0),
        ),
        read_write(
            "length",
            |me, _| text(me.length),
            set!(|me, length, _| me.length = length),
        ),
        read_write(
            "datasize",
            |me, _| text(me.length),
            set!(|me, length, _| me.length = length),
        ),
        read_write(
            "rate",
            |me, _| text(me.rate),
            set!(|me, rate, ctx| {
                me.rate = rate;
                me.start(ctx);
            }),
        ),
        read_write(
            "limit",
            |me, _| text(me.limit),
            set!(|me, limit, ctx| {
                me.limit = limit;
                me.start(ctx);
            }),
        ),
        read_write(
            "active",
            |me, _| text(me.active),
            set!(|me, active, ctx| {
                me.active = active;
                me.start(ctx);
            }),
        ),
    ],
    build: |a| {
        let (data, rate, limit) = (
            a.or("DATA", default_data()),
            a.or("RATE", 10u64),
            a.or("LIMIT", -1i64),
        );
        let (active, length, stop) = (
            a.or("ACTIVE", true),
            a.or("LENGTH", -1i64),
            a.or("STOP", false),
        );
        Some(Box::new(RatedSource {
            data: data?.0,
            length: length?,
            rate: rate?,
            limit: limit?,
            active: active?,
            stop: stop?,
            count: 0,
            next_ns: 0,
        }))
    },
    ..Class::DEFAULT
};

const SECOND: u64 = 1_000_000_000;
/// The source does not make up for packets that are later than this.
const MAX_LATE_NS: u64 = SECOND / 10;
/// Packets made before others get their turn.
const MAX_AT_ONCE: u64 = 256;

struct RatedSource {
    data: Vec<u8>,
    length: i64,
    rate: u64,
    limit: i64,
    active: bool,
    stop: bool,
    count: u64,
    next_ns: u64,
}

impl RatedSource {
    fn is_done(&self) -> bool {
        u64::try_from(self.limit).is_ok_and(|limit| self.count >= limit)
    }

    fn makes_packets(&self) -> bool {
        self.active && self.rate > 0 && !self.is_done()
    }

    fn start(&mut self, ctx: &mut Context<'_>) {
        self.next_ns = ctx.now_ns();
        let makes = self.makes_packets();
        ctx.set_readable(makes);
        match makes && ctx.output_is_push(0) {
            true => ctx.set_timer(self.next_ns),
            false => ctx.clear_timer(),
        }
    }

    /// The next packet, if it is due.
    fn due(&mut self, ctx: &mut Context<'_>) -> bool {
        let is_due = self.next_ns <= ctx.now_ns() && self.makes_packets();
        if is_due {
            self.next_ns += (SECOND / self.rate).max(1);
            self.count += 1;
        }
        is_due
    }

    /// Does not make up for much when others were late.
    fn catch_up(&mut self, ctx: &Context<'_>) {
        self.next_ns = self.next_ns.max(ctx.now_ns().saturating_sub(MAX_LATE_NS));
    }

    fn packet(&self, ctx: &mut Context<'_>) -> Option<Packet> {
        let mut content = self.data.as_slice();
        let length = usize::try_from(self.length).unwrap_or(content.len());
        let mut packet = ctx.pool().alloc(length)?;
        content = &content[..content.len().min(length)];
        packet.data_mut().fill(0);
        packet.data_mut()[..content.len()].copy_from_slice(content);
        packet.set_timestamp_ns(ctx.now_ns());
        Some(packet)
    }
}

impl Element for RatedSource {
    fn initialize(&mut self, ctx: &mut Context<'_>) -> Result<(), String> {
        self.start(ctx);
        Ok(())
    }

    /// Makes what is due; or there is something to pull.
    fn run_timer(&mut self, ctx: &mut Context<'_>) {
        if !ctx.output_is_push(0) {
            return ctx.set_readable(self.makes_packets());
        }
        self.catch_up(ctx);
        for _ in 0..MAX_AT_ONCE {
            if !self.due(ctx) {
                break;
            }
            if let Some(packet) = self.packet(ctx) {
                ctx.push_one(0, packet);
            }
        }
        if self.is_done() {
            if self.stop {
                ctx.stop();
            }
        } else if self.makes_packets() {
            ctx.set_timer(self.next_ns);
        }
    }

    fn pull(&mut self, ctx: &mut Context<'_>, _port: usize, max: usize) -> Batch {
        self.catch_up(ctx);
        let mut batch = ctx.batch();
        while batch.len() < max && self.due(ctx) {
            let packet = self.packet(ctx);
            batch.extend(packet);
        }
        if self.is_done() && self.stop && !batch.is_empty() {
            ctx.stop();
        }
        if batch.is_empty() {
            ctx.set_readable(false);
            if self.makes_packets() {
                ctx.set_timer(self.next_ns);
            }
        }
        batch
    }

    fn signal(&self) -> Signal {
        Signal::Own
    }
}

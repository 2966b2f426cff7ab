// SPDX-License-Identifier: Apache-2.0
//! Makes packets of random bytes as fast as they are taken.
//!
//! # Synopsis
//! `RandomSource(LENGTH [, LIMIT, BURST, ACTIVE, TIMESTAMP, STOP, END_CALL])`: LENGTH bytes, at most 65,535, mandatory; at
//! most LIMIT packets (default -1: no limit), BURST (default 1) each time, only while ACTIVE (default true).
//! TIMESTAMP (default true) sets the timestamp annotation. With STOP the router stops after the last one;
//! END_CALL (`HANDLER VALUE`) is written then.
//! # Ports
//! 0/1, agnostic. It rests while a queue it pushes to is full.
//! # Handlers
//! * `count` (read): packets made. `reset` (write): sets it to 0, so that LIMIT more are made.
//! * `length`, `limit`, `burst`, `active` (read, write): the arguments.
//! # Example
//! `RandomSource(60, LIMIT 1000, STOP true) -> Queue -> ToDevice(0);`
use crate::handler_call::HandlerCall;
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "RandomSource",
    ports: "0/1",
    args: &[
        mandatory("LENGTH"),
        optional("LIMIT"),
        optional("BURST"),
        optional("ACTIVE"),
        keyword("TIMESTAMP"),
        keyword("STOP"),
        keyword("END_CALL"),
    ],
    handlers: &[
        read("count", |me: &mut RandomSource, _| text(me.count)),
        command(
            "reset",
            run!(|me, ctx| {
                me.count = 0;
                ctx.schedule();
            }),
        ),
        read_write(
            "length",
            |me, _| text(me.length),
            set!(|me, length, _| me.length = length),
        ),
        read_write(
            "limit",
            |me, _| text(me.limit),
            set!(|me, limit, ctx| {
                me.limit = limit;
                ctx.schedule();
            }),
        ),
        read_write(
            "burst",
            |me, _| text(me.burst),
            set!(|me, Burst(burst), _| {
                me.burst = burst;
            }),
        ),
        read_write(
            "active",
            |me, _| text(me.active),
            set!(|me, active, ctx| {
                me.active = active;
                ctx.schedule();
            }),
        ),
    ],
    build: |a| {
        let (length, limit) = (a.need("LENGTH"), a.or("LIMIT", -1i64));
        let (burst, active) = (a.or("BURST", Burst(1)), a.or("ACTIVE", true));
        let (timestamp, stop) = (a.or("TIMESTAMP", true), a.or("STOP", false));
        let end_call = a.opt("END_CALL");
        Some(Box::new(RandomSource {
            length: length?,
            limit: limit?,
            burst: burst?.0,
            active: active?,
            timestamp: timestamp?,
            stop: stop?,
            end_call: end_call?,
            count: 0,
        }))
    },
    task: true,
    live: true,
    ..Class::DEFAULT
};

/// Packets each time, at least one.
struct Burst(usize);

impl FromArg for Burst {
    fn from_arg(text: &str, at: click_core::ArgContext<'_>) -> Result<Self, String> {
        match usize::from_arg(text, at)? {
            0 => Err("expected at least 1, got 0".to_string()),
            burst => Ok(Self(burst)),
        }
    }
}

struct RandomSource {
    length: u16,
    limit: i64,
    burst: usize,
    active: bool,
    timestamp: bool,
    stop: bool,
    end_call: Option<HandlerCall>,
    count: u64,
}

impl RandomSource {
    /// Packets that may be made now.
    fn allowance(&self) -> usize {
        if !self.active {
            return 0;
        }
        match u64::try_from(self.limit) {
            Ok(limit) => usize::try_from(limit.saturating_sub(self.count)).unwrap_or(usize::MAX),
            Err(_) => usize::MAX,
        }
    }

    fn make_one(&self, ctx: &mut Context<'_>) -> Option<Packet> {
        let mut packet = ctx.pool().alloc(usize::from(self.length))?;
        for piece in packet.data_mut().chunks_mut(4) {
            let drawn = ctx.random_u32().to_le_bytes();
            piece.copy_from_slice(&drawn[..piece.len()]);
        }
        if self.timestamp {
            packet.set_timestamp_ns(ctx.now_ns());
        }
        Some(packet)
    }

    /// The last packet is made.
    fn end(&self, ctx: &mut Context<'_>) {
        if self.stop {
            ctx.stop();
        }
        if let Some(call) = &self.end_call {
            call.make_later(ctx);
        }
    }

    fn make(&mut self, ctx: &mut Context<'_>, most: usize) -> Batch {
        let mut batch = ctx.batch();
        let packets = (0..most).map_while(|_| self.make_one(ctx));
        batch.extend(packets);
        self.count += batch.len() as u64;
        if u64::try_from(self.limit).is_ok_and(|limit| self.count >= limit) && !batch.is_empty() {
            self.end(ctx);
        }
        batch
    }
}

impl Element for RandomSource {
    fn initialize(&mut self, ctx: &mut Context<'_>) -> Result<(), String> {
        self.end_call.iter().try_for_each(|c| c.check(ctx))?;
        if ctx.output_is_push(0) {
            ctx.schedule();
        }
        Ok(())
    }

    fn run_task(&mut self, ctx: &mut Context<'_>) -> bool {
        let (left, most) = (self.allowance(), self.allowance().min(self.burst));
        if most == 0 || !ctx.output_is_push(0) || !ctx.writable(0) {
            return false;
        }
        // the last packet alone: before it leaves, the end is reported to who can count the others
        let turns = ctx.batch_runs(most, |_| left - 1);
        let batch = self.make(ctx, most.saturating_mul(turns));
        let worked = !batch.is_empty();
        ctx.push(0, batch);
        ctx.schedule();
        worked
    }

    fn pull(&mut self, ctx: &mut Context<'_>, _port: usize, max: usize) -> Batch {
        let most = self.allowance().min(max);
        self.make(ctx, most)
    }

    fn signal(&self) -> Signal {
        Signal::Always
    }
}

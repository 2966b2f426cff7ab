// SPDX-License-Identifier: Apache-2.0
//! Pulls packets and pushes them on.
//!
//! # Synopsis
//! `Unqueue([BURST, ACTIVE, LIMIT])`: BURST packets each time (default 1; negative: as many as a
//! batch holds), only while ACTIVE (default true), at most LIMIT in all (default -1: no limit).
//! # Ports
//! 1/1, pull to push.
//! # Handlers
//! * `count` (read): packets moved. `reset`, `reset_counts` (write): sets it to 0, so that LIMIT more may pass.
//! * `active`, `limit`, `burst` (read, write): the arguments.
//! # Example
//! `FromDevice(0) -> Queue -> Unqueue(BURST 32) -> Discard;`
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "Unqueue",
    processing: "l/h",
    args: &[optional("BURST"), keyword("ACTIVE"), keyword("LIMIT")],
    handlers: &[
        read("count", |me: &mut Unqueue, _| text(me.count)),
        command(
            "reset",
            run!(|me, ctx| {
                me.count = 0;
                ctx.schedule();
            }),
        ),
        command(
            "reset_counts",
            run!(|me, ctx| {
                me.count = 0;
                ctx.schedule();
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
            set!(|me, burst, ctx| {
                me.burst = burst;
                ctx.schedule();
            }),
        ),
    ],
    build: |a| {
        let (burst, active, limit) = (
            a.or("BURST", 1i64),
            a.or("ACTIVE", true),
            a.or("LIMIT", -1i64),
        );
        Some(Box::new(Unqueue {
            burst: burst?,
            active: active?,
            limit: limit?,
            count: 0,
        }))
    },
    task: true,
    ..Class::DEFAULT
};

struct Unqueue {
    burst: i64,
    active: bool,
    limit: i64,
    count: u64,
}

impl Unqueue {
    /// How many packets may be pulled at once.
    fn allowance(&self) -> usize {
        let burst = usize::try_from(self.burst).unwrap_or(usize::MAX);
        burst.min(self.left())
    }

    /// Packets until LIMIT is reached.
    fn left(&self) -> usize {
        let Ok(limit) = u64::try_from(self.limit) else {
            return usize::MAX;
        };
        usize::try_from(limit.saturating_sub(self.count)).unwrap_or(usize::MAX)
    }
}

impl Element for Unqueue {
    fn initialize(&mut self, ctx: &mut Context<'_>) -> Result<(), String> {
        ctx.schedule();
        Ok(())
    }

    fn run_task(&mut self, ctx: &mut Context<'_>) -> bool {
        let allowance = self.allowance();
        if !self.active || allowance == 0 {
            return false;
        }
        let turns = ctx.batch_runs(allowance, |ctx| self.left().min(ctx.stored_before(0)));
        let batch = ctx.pull(0, allowance.saturating_mul(turns));
        let worked = !batch.is_empty();
        self.count += batch.len() as u64;
        ctx.push(0, batch);
        if worked || ctx.readable(0) {
            ctx.schedule();
        }
        worked
    }

    fn steady_runs(&self) -> usize {
        match self.active && self.burst == 1 {
            true => self.left(),
            false => 0,
        }
    }

    fn take_state(&mut self, _ctx: &mut Context<'_>, old: &mut dyn Element) {
        if let Some(old) = old.as_any_mut().downcast_mut::<Self>() {
            self.count = old.count;
        }
    }
}

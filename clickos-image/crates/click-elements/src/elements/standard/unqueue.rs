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
        read("count"),
        write("reset"),
        write("reset_counts"),
        read_write("active"),
        read_write("limit"),
        read_write("burst"),
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

    fn read(&self, _view: &View<'_>, handler: &str, _param: &str) -> Text {
        match handler {
            "count" => text(self.count),
            "active" => text(self.active),
            "limit" => text(self.limit),
            "burst" => text(self.burst),
            _ => undeclared(handler),
        }
    }

    fn write(&self, view: &View<'_>, handler: &str, value: &str) -> Result<Change, HandlerError> {
        match handler {
            "reset" | "reset_counts" => on_write(|me: &mut Self, ctx| {
                me.count = 0;
                ctx.schedule();
            }),
            "active" => on_value(view, value, |me: &mut Self, active, ctx| {
                me.active = active;
                ctx.schedule();
            }),
            "limit" => on_value(view, value, |me: &mut Self, limit, ctx| {
                me.limit = limit;
                ctx.schedule();
            }),
            "burst" => on_value(view, value, |me: &mut Self, burst, ctx| {
                me.burst = burst;
                ctx.schedule();
            }),
            _ => undeclared(handler),
        }
    }

    fn take_state(&mut self, _ctx: &mut Context<'_>, old: &mut dyn Element) {
        if let Some(old) = old.as_any_mut().downcast_mut::<Self>() {
            self.count = old.count;
        }
    }
}

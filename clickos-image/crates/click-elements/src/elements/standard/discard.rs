// SPDX-License-Identifier: Apache-2.0
//! Drops all packets.
//!
//! # Synopsis
//! `Discard([ACTIVE, BURST])`: with a pull input it pulls while ACTIVE (default true),
//! BURST packets at a time (default 1).
//! # Ports
//! 1/0, agnostic.
//! # Handlers
//! * `count` (read): packets dropped. `reset_counts` (write): sets it to 0.
//! * `active` (read, write): ACTIVE.
//! # Example
//! `c :: Classifier(12/0800, -); c[1] -> Discard;`
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "Discard",
    aliases: &["DiscardNoFree"],
    ports: "1/0",
    args: &[keyword("ACTIVE"), keyword("BURST")],
    handlers: &[
        read("count", |me: &mut Discard, _| text(me.count)),
        command("reset_counts", run!(|me, _| me.count = 0)),
        read_write("active", |me, _| text(me.active), Discard::set_active),
    ],
    build: |a| {
        let (active, burst) = (a.or("ACTIVE", true), a.or("BURST", 1));
        Some(Box::new(Discard {
            active: active?,
            burst: burst?,
            count: 0,
        }))
    },
    task: true,
    quiet: true,
    ..Class::DEFAULT
};

struct Discard {
    active: bool,
    burst: usize,
    count: u64,
}

impl Discard {
    fn drop_all(&mut self, ctx: &mut Context<'_>, batch: Batch) {
        self.count += batch.len() as u64;
        ctx.recycle(batch);
    }
}

impl Discard {
    fn set_active(&self, view: &View<'_>, value: &str) -> Result<Change, HandlerError> {
        on_value(self, view, value, |me, active, ctx| {
            me.active = active;
            if ctx.input_is_pull(0) {
                ctx.schedule();
            }
        })
    }
}

impl Element for Discard {
    fn initialize(&mut self, ctx: &mut Context<'_>) -> Result<(), String> {
        if ctx.input_is_pull(0) && ctx.readable(0) {
            ctx.schedule();
        }
        Ok(())
    }

    fn push(&mut self, ctx: &mut Context<'_>, _port: usize, batch: Batch) {
        self.drop_all(ctx, batch);
    }

    fn is_plain(&self) -> bool {
        true
    }

    fn run_task(&mut self, ctx: &mut Context<'_>) -> bool {
        if !self.active {
            return false;
        }
        let turns = ctx.batch_runs(self.burst, |ctx| ctx.stored_before(0));
        let batch = ctx.pull(0, self.burst.saturating_mul(turns));
        let worked = !batch.is_empty();
        self.drop_all(ctx, batch);
        if worked || ctx.readable(0) {
            ctx.schedule();
        }
        worked
    }

    fn steady_runs(&self) -> usize {
        match self.active && self.burst == 1 {
            true => usize::MAX,
            false => 0,
        }
    }

    fn take_state(&mut self, _ctx: &mut Context<'_>, old: &mut dyn Element) {
        if let Some(old) = old.as_any_mut().downcast_mut::<Self>() {
            self.count = old.count;
        }
    }
}

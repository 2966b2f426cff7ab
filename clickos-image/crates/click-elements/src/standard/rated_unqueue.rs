// SPDX-License-Identifier: Apache-2.0
//! `RatedUnqueue` and `BandwidthRatedUnqueue`.
use crate::prelude::*;
use crate::standard::rated::{Rated, Unit};

/// The classes but for their names, arguments and `build`.
pub const CLASS: Class = Class {
    processing: "l/h",
    handlers: &[
        read_write(
            "rate",
            |me: &mut RatedUnqueue, _| me.rated.unit.show(me.rated.bucket.rate()),
            RatedUnqueue::set_rate,
        ),
        read_write(
            "active",
            |me, _| text(me.active),
            set!(|me, active, ctx| {
                me.active = active;
                ctx.schedule();
            }),
        ),
        read("calls", |me, _| me.calls_text()),
    ],
    task: true,
    ..Class::DEFAULT
};

pub fn build(args: &mut Args<'_>, unit: Unit) -> Built {
    Some(Box::new(RatedUnqueue {
        rated: Rated::from_args(args, unit)?,
        active: true,
        calls: Calls::default(),
    }))
}

/// The value of handler `calls` tells.
#[derive(Default)]
struct Calls {
    runs: u64,
    empty_runs: u64,
    pushes: u64,
    failed_pulls: u64,
}

struct RatedUnqueue {
    rated: Rated,
    active: bool,
    calls: Calls,
}

impl RatedUnqueue {
    /// Packets that may be pulled at once.
    fn allowance(&self) -> usize {
        let tokens = self.rated.bucket.tokens();
        if tokens < self.rated.unit.threshold() {
            return 0;
        }
        match self.rated.unit {
            Unit::Packets => usize::try_from(tokens).unwrap_or(usize::MAX),
            // one may take more than is left above the threshold
            Unit::Bytes => 1,
        }
    }

    fn wait_for_tokens(&self, ctx: &mut Context<'_>) {
        let threshold = self.rated.unit.threshold();
        if let Some(at_ns) = self.rated.bucket.time_of(threshold) {
            ctx.set_timer(at_ns);
        }
    }

    fn move_packets(&mut self, ctx: &mut Context<'_>, most: usize) -> bool {
        let batch = ctx.pull(0, most);
        for packet in batch.iter() {
            self.rated.bucket.remove(self.rated.unit.cost(packet));
        }
        let worked = !batch.is_empty();
        self.calls.pushes += batch.len() as u64;
        self.calls.failed_pulls += u64::from(!worked);
        ctx.push(0, batch);
        if worked || ctx.readable(0) {
            ctx.schedule();
        }
        worked
    }
}

impl RatedUnqueue {
    fn set_rate(&self, view: &View<'_>, value: &str) -> Result<Change, HandlerError> {
        let rate = self.rated.unit.parse(view, value)?;
        Ok(Change::of(move |me: &mut Self, ctx| {
            me.rated.set_rate(rate);
            ctx.schedule();
        }))
    }

    fn calls_text(&self) -> Text {
        let c = &self.calls;
        text(format!(
            "{} calls to run_task()\n{} empty runs\n{} pushes\n{} failed pulls\n",
            c.runs, c.empty_runs, c.pushes, c.failed_pulls
        ))
    }
}

impl Element for RatedUnqueue {
    fn initialize(&mut self, ctx: &mut Context<'_>) -> Result<(), String> {
        ctx.schedule();
        Ok(())
    }

    fn run_task(&mut self, ctx: &mut Context<'_>) -> bool {
        if !self.active {
            return false;
        }
        self.calls.runs += 1;
        self.rated.bucket.refill(ctx.now_ns());
        let most = self.allowance();
        let worked = most > 0 && self.move_packets(ctx, most);
        if most == 0 {
            self.wait_for_tokens(ctx);
        }
        self.calls.empty_runs += u64::from(!worked);
        worked
    }

    fn run_timer(&mut self, ctx: &mut Context<'_>) {
        ctx.schedule();
    }

    fn take_state(&mut self, ctx: &mut Context<'_>, old: &mut dyn Element) {
        if let Some(old) = replaced::<Self>(ctx, old) {
            self.rated.take_level(&old.rated);
            self.active = old.active;
            core::mem::swap(&mut self.calls, &mut old.calls);
        }
    }
}

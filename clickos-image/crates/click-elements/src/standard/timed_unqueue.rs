// SPDX-License-Identifier: Apache-2.0
//! `TimedUnqueue` and `Burster`.
use crate::prelude::*;

/// The classes but for their names and `build`.
pub const CLASS: Class = Class {
    processing: "l/h",
    args: &[mandatory("INTERVAL"), optional("BURST")],
    ..Class::DEFAULT
};

pub fn build(args: &mut Args<'_>, default_burst: usize) -> Built {
    let (interval, burst) = (
        args.need::<Span>("INTERVAL"),
        args.or("BURST", default_burst),
    );
    let (interval, burst) = (interval?, burst?);
    if burst == 0 {
        args.error("BURST", "expected at least 1, got 0");
    }
    Some(Box::new(TimedUnqueue {
        interval_ns: interval.ns.max(MIN_NS),
        burst,
        next_ns: 0,
    }))
}

/// Shorter intervals would keep the machine busy with nothing to do.
const MIN_NS: u64 = 1_000_000;

struct TimedUnqueue {
    interval_ns: u64,
    burst: usize,
    next_ns: u64,
}

impl TimedUnqueue {
    /// Moves a burst, however many batches it takes; returns whether there was anything.
    fn move_burst(&mut self, ctx: &mut Context<'_>) -> bool {
        let mut left = self.burst;
        while left > 0 {
            let batch = ctx.pull(0, left);
            if batch.is_empty() {
                break;
            }
            left -= batch.len();
            ctx.push(0, batch);
        }
        left < self.burst
    }
}

impl Element for TimedUnqueue {
    fn initialize(&mut self, ctx: &mut Context<'_>) -> Result<(), String> {
        ctx.schedule();
        Ok(())
    }

    /// Packets that come while it waits do not shorten the wait.
    fn run_task(&mut self, ctx: &mut Context<'_>) -> bool {
        let now = ctx.now_ns();
        if now < self.next_ns {
            return false;
        }
        let worked = self.move_burst(ctx);
        if !worked && !ctx.readable(0) {
            return false;
        }
        // once late, the rhythm begins again
        let due = self.next_ns.saturating_add(self.interval_ns);
        let anew = now.saturating_add(self.interval_ns);
        self.next_ns = if due > now { due } else { anew };
        ctx.set_timer(self.next_ns);
        worked
    }

    fn run_timer(&mut self, ctx: &mut Context<'_>) {
        ctx.schedule();
    }
}

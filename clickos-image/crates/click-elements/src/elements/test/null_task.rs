// SPDX-License-Identifier: Apache-2.0
//! Has a task that does nothing, to measure what tasks cost.
//!
//! # Synopsis
//! `NullTask([LIMIT, STOP, ACTIVE])`: the task runs LIMIT times (default 0: forever), and stops the router then with
//! STOP (default false). It waits to be scheduled unless ACTIVE (default true).
//! # Ports
//! 0/0.
//! # Handlers
//! * `count` (read): how often it ran. `reset` (write): sets it to 0.
//! * `limit` (read, write): LIMIT.
//! * `scheduled` (read, write): whether it is to run.
//! # Example
//! `NullTask(LIMIT 1000000, STOP true);`
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "NullTask",
    ports: "0/0",
    args: &[keyword("LIMIT"), keyword("STOP"), keyword("ACTIVE")],
    handlers: &[
        read("count", |me: &mut NullTask, _| text(me.count)),
        command("reset", run!(|me, _| me.count = 0)),
        read_write(
            "limit",
            |me, _| text(me.limit),
            set!(|me, limit, _| me.limit = limit),
        ),
        read_write(
            "scheduled",
            |me, _| text(me.scheduled),
            set!(|me, scheduled, ctx| {
                me.scheduled = scheduled;
                ctx.schedule();
            }),
        ),
    ],
    task: true,
    build: |a| {
        let (limit, stop) = (a.or("LIMIT", 0), a.or("STOP", false));
        let scheduled = a.or("ACTIVE", true);
        Some(Box::new(NullTask {
            limit: limit?,
            stop: stop?,
            scheduled: scheduled?,
            count: 0,
        }))
    },
    ..Class::DEFAULT
};

struct NullTask {
    limit: u64,
    stop: bool,
    scheduled: bool,
    count: u64,
}

impl Element for NullTask {
    fn initialize(&mut self, ctx: &mut Context<'_>) -> Result<(), String> {
        ctx.schedule();
        Ok(())
    }

    fn run_task(&mut self, ctx: &mut Context<'_>) -> bool {
        if !self.scheduled {
            return false;
        }
        self.count += 1;
        self.scheduled = self.limit == 0 || self.count < self.limit;
        if self.scheduled {
            ctx.schedule();
        } else if self.stop {
            ctx.stop();
        }
        true
    }
}

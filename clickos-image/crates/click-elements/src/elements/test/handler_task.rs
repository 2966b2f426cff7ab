// SPDX-License-Identifier: Apache-2.0
//! Has a task that calls a write handler.
//!
//! # Synopsis
//! `HandlerTask(HANDLER [, ACTIVE, RESCHEDULE])`: HANDLER is `HANDLER VALUE`. The task runs once, again and again with
//! RESCHEDULE (default false). It waits to be scheduled unless ACTIVE (default true).
//! # Ports
//! 0/0.
//! # Handlers
//! * `count` (read): how often it ran.
//! * `reschedule` (read, write): RESCHEDULE.
//! * `scheduled` (read, write): whether it is to run.
//! # Example
//! `q :: Queue; HandlerTask(q.reset_counts, ACTIVE false);`
use crate::handler_call::HandlerCall;
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "HandlerTask",
    ports: "0/0",
    args: &[
        mandatory("HANDLER"),
        keyword("ACTIVE"),
        keyword("RESCHEDULE"),
    ],
    handlers: &[
        read("count", |me: &mut HandlerTask, _| text(me.count)),
        read_write(
            "reschedule",
            |me, _| text(me.reschedule),
            set!(|me, again, _| me.reschedule = again),
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
        let (call, scheduled) = (a.need("HANDLER"), a.or("ACTIVE", true));
        let reschedule = a.or("RESCHEDULE", false);
        Some(Box::new(HandlerTask {
            call: Some(call?),
            scheduled: scheduled?,
            reschedule: reschedule?,
            count: 0,
        }))
    },
    ..Class::DEFAULT
};

#[derive(Default)]
struct HandlerTask {
    /// There is one, but while it is called.
    call: Option<HandlerCall>,
    scheduled: bool,
    reschedule: bool,
    count: u64,
}

impl Element for HandlerTask {
    fn initialize(&mut self, ctx: &mut Context<'_>) -> Result<(), String> {
        ctx.schedule();
        self.call.iter().try_for_each(|call| call.check(ctx))
    }

    fn run_task(&mut self, ctx: &mut Context<'_>) -> bool {
        if !self.scheduled {
            return false;
        }
        self.count += 1;
        self.scheduled = self.reschedule;
        if let Some(call) = self.call.clone() {
            call.make_from(ctx, self);
        }
        if self.scheduled {
            ctx.schedule();
        }
        true
    }
}

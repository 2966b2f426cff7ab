// SPDX-License-Identifier: Apache-2.0
//! Pulls packets and pushes them on while there is room for them.
//!
//! # Synopsis
//! `Unqueue2([BURST, QUIET])`: it does not pull while the queues behind it are full. To know that, it moves one
//! packet at a time, so BURST and QUIET are checked and have no effect. Prefer `Unqueue`.
//! # Ports
//! 1/1, pull to push.
//! # Handlers
//! * `packets` (read): packets moved.
//! # Differences from Click
//! Moves one packet at a time, so BURST has no effect; QUEUES is missing.
//! # Example
//! `Queue -> Unqueue2(32) -> Queue(1) -> ToDevice(1);`
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "Unqueue2",
    processing: "l/h",
    args: &[optional("BURST"), keyword("QUIET")],
    handlers: &[read("packets", |me: &mut Unqueue2, _| text(me.packets))],
    build: |a| {
        let (burst, quiet) = (a.or("BURST", 1i64), a.or("QUIET", false));
        burst.and(quiet)?;
        Some(Box::new(Unqueue2 { packets: 0 }))
    },
    task: true,
    ..Class::DEFAULT
};

struct Unqueue2 {
    packets: u64,
}

impl Element for Unqueue2 {
    fn initialize(&mut self, ctx: &mut Context<'_>) -> Result<(), String> {
        ctx.schedule();
        Ok(())
    }

    /// One packet a time: only then is it known whether there is room for the next.
    fn run_task(&mut self, ctx: &mut Context<'_>) -> bool {
        if !ctx.writable(0) {
            return false;
        }
        let Some(packet) = ctx.pull_one(0) else {
            if ctx.readable(0) {
                ctx.schedule();
            }
            return false;
        };
        self.packets += 1;
        ctx.push_one(0, packet);
        ctx.schedule();
        true
    }
}

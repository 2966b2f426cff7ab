// SPDX-License-Identifier: Apache-2.0
//! Pulls packets and pushes them on after a delay.
//!
//! # Synopsis
//! `DelayUnqueue(DELAY)`: a packet goes DELAY seconds after its timestamp annotation, which becomes that
//! time; without one, DELAY after it was pulled. Mandatory.
//! # Ports
//! 1/1, pull to push. It holds one packet at most.
//! # Handlers
//! * `delay` (read, write): DELAY, for packets pulled from now on.
//! # Example
//! `FromDevice(0) -> SetTimestamp -> Queue -> DelayUnqueue(50ms) -> ToDevice(1);`
use crate::prelude::*;
use crate::standard::delay::{BURST, delay_packet};
use crate::standard::interval::interval;

pub static ELEMENT: Class = Class {
    name: "DelayUnqueue",
    processing: "l/h",
    args: &[mandatory("DELAY")],
    handlers: &[read_write(
        "delay",
        |me: &mut DelayUnqueue, _| text(interval(me.delay)),
        set!(|me, delay, _| me.delay = delay),
    )],
    build: |a| {
        Some(Box::new(DelayUnqueue {
            delay: a.need("DELAY")?,
            held: None,
        }))
    },
    task: true,
    ..Class::DEFAULT
};

struct DelayUnqueue {
    delay: Span,
    held: Option<Packet>,
}

impl DelayUnqueue {
    /// Holds the next packet, if there is one.
    fn fetch(&mut self, ctx: &mut Context<'_>) {
        self.held = ctx.pull_one(0);
        if let Some(packet) = &mut self.held {
            delay_packet(packet, ctx.now_ns(), self.delay);
        }
    }
}

impl Element for DelayUnqueue {
    fn initialize(&mut self, ctx: &mut Context<'_>) -> Result<(), String> {
        ctx.schedule();
        Ok(())
    }

    fn run_task(&mut self, ctx: &mut Context<'_>) -> bool {
        let mut ready = ctx.batch();
        while ready.len() < BURST {
            if self.held.is_none() {
                self.fetch(ctx);
            }
            match self.held.take_if(|p| p.timestamp_ns() <= ctx.now_ns()) {
                Some(packet) => ready.push_back(packet),
                None => break,
            }
        }
        let worked = !ready.is_empty();
        ctx.push(0, ready);
        match &self.held {
            Some(packet) => ctx.set_timer(packet.timestamp_ns()),
            None if worked || ctx.readable(0) => ctx.schedule(),
            None => {}
        }
        worked
    }

    fn run_timer(&mut self, ctx: &mut Context<'_>) {
        ctx.schedule();
    }
}

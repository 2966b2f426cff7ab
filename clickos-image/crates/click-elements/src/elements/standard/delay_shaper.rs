// SPDX-License-Identifier: Apache-2.0
//! Lets packets be pulled after a delay.
//!
//! # Synopsis
//! `DelayShaper(DELAY)`: a packet can be pulled DELAY seconds after its timestamp annotation; without one,
//! DELAY after it was pulled from behind. Its timestamp becomes the time it goes. Mandatory.
//! # Ports
//! 1/1, pull. It holds one packet at most.
//! # Handlers
//! * `delay` (read, write): DELAY, for packets pulled from now on.
//! # Example
//! `FromDevice(0) -> SetTimestamp -> Queue -> DelayShaper(50ms) -> ToDevice(1);`
use crate::prelude::*;
use crate::standard::delay::delay_packet;
use crate::standard::interval::interval;

pub static ELEMENT: Class = Class {
    name: "DelayShaper",
    processing: "l/l",
    args: &[mandatory("DELAY")],
    handlers: &[read_write(
        "delay",
        |me: &mut DelayShaper, _| text(interval(me.delay)),
        set!(|me, delay, _| me.delay = delay),
    )],
    build: |a| {
        Some(Box::new(DelayShaper {
            delay: a.need("DELAY")?,
            held: None,
        }))
    },
    ..Class::DEFAULT
};

struct DelayShaper {
    delay: Span,
    held: Option<Packet>,
}

impl DelayShaper {
    /// The next packet if its time has come; else it is held.
    fn next(&mut self, ctx: &mut Context<'_>) -> Option<Packet> {
        let now = ctx.now_ns();
        if self.held.is_none() {
            self.held = ctx.pull_one(0);
            if let Some(packet) = &mut self.held {
                delay_packet(packet, now, self.delay);
            }
        }
        let mut packet = self.held.take_if(|p| p.timestamp_ns() <= now)?;
        packet.set_timestamp_ns(now);
        Some(packet)
    }
}

impl Element for DelayShaper {
    fn initialize(&mut self, ctx: &mut Context<'_>) -> Result<(), String> {
        ctx.set_readable(true);
        Ok(())
    }

    fn pull(&mut self, ctx: &mut Context<'_>, _port: usize, max: usize) -> Batch {
        let mut batch = ctx.batch();
        while batch.len() < max {
            let Some(packet) = self.next(ctx) else { break };
            batch.push_back(packet);
        }
        if let Some(packet) = &self.held {
            ctx.set_timer(packet.timestamp_ns());
            ctx.set_readable(false);
        } else {
            let readable = ctx.readable(0);
            ctx.set_readable(readable);
        }
        batch
    }

    /// There is something behind it again.
    fn run_task(&mut self, ctx: &mut Context<'_>) -> bool {
        if self.held.is_none() {
            ctx.set_readable(true);
        }
        false
    }

    fn run_timer(&mut self, ctx: &mut Context<'_>) {
        ctx.set_readable(true);
    }

    /// It may hold a packet while there is none behind it.
    fn signal(&self) -> Signal {
        Signal::Own
    }
}

// SPDX-License-Identifier: Apache-2.0
//! Sends packets around a part of the configuration, or through it.
//!
//! # Synopsis
//! `Bypass([ACTIVE, INLINE])`: packets go straight on, from port 0 to port 0; while ACTIVE (default false) they take
//! the way over port 1. INLINE is accepted; every Bypass stays where it is.
//! # Ports
//! 1-2/1-2, agnostic. Pushed packets leave by output 1 while it is active, and what comes back to input 1 leaves by
//! output 0. Pulled packets are taken from input 1 while it is active, and what is pulled at output 1 comes from input 0.
//! Without such a port packets go straight on.
//! # Handlers
//! * `active` (read, write): ACTIVE.
//! # Differences from Click
//! Keeps its place, with INLINE or without.
//! # Example
//! `FromDevice(0) -> b :: Bypass -> ToDevice(1); b[1] -> Print(seen) -> [1] b;`
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "Bypass",
    ports: "1-2/1-2",
    flow: "xy/[xy]x",
    args: &[optional("ACTIVE"), keyword("INLINE")],
    handlers: &[read_write(
        "active",
        |me: &mut Bypass, _| text(me.active),
        set!(|me, active, _| me.active = active),
    )],
    build: |a| {
        let (active, inline) = (a.or("ACTIVE", false), a.or("INLINE", false));
        inline?;
        Some(Box::new(Bypass { active: active? }))
    },
    ..Class::DEFAULT
};

#[derive(Default)]
struct Bypass {
    active: bool,
}

impl Bypass {
    /// Where packets at `port` continue, of that many ports.
    fn output_port(&self, port: usize, ports: usize) -> usize {
        usize::from(self.active && port == 0 && ports > 1)
    }
}

impl Element for Bypass {
    fn push(&mut self, ctx: &mut Context<'_>, port: usize, batch: Batch) {
        ctx.push(self.output_port(port, ctx.outputs()), batch);
    }

    fn pull(&mut self, ctx: &mut Context<'_>, port: usize, max: usize) -> Batch {
        let way = self.output_port(port, ctx.inputs());
        ctx.with_me(self, |ctx| ctx.pull(way, max))
    }
}

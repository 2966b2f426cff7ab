// SPDX-License-Identifier: Apache-2.0
//! Passes packets, and tells those that push whether it has room, as a handler says.
//!
//! # Synopsis
//! `UpstreamNotifier(SIGNAL)`: with true, the element tells sources to push; mandatory. Packets
//! pushed nevertheless pass.
//! # Ports
//! 1/1, push.
//! # Handlers
//! * `signal` (read, write): SIGNAL.
//! # Example
//! `InfiniteSource -> n :: UpstreamNotifier(false) -> Discard;`
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "UpstreamNotifier",
    processing: "h/h",
    args: &[mandatory("SIGNAL")],
    handlers: &[read_write(
        "signal",
        |me: &mut UpstreamNotifier, _| text(me.on),
        set!(|me, on, ctx| {
            me.on = on;
            ctx.set_writable(on);
        }),
    )],
    build: |a| {
        Some(Box::new(UpstreamNotifier {
            on: a.need("SIGNAL")?,
        }))
    },
    ..Class::DEFAULT
};

struct UpstreamNotifier {
    on: bool,
}

impl Element for UpstreamNotifier {
    fn initialize(&mut self, ctx: &mut Context<'_>) -> Result<(), String> {
        ctx.set_writable(self.on);
        Ok(())
    }

    fn signal(&self) -> Signal {
        Signal::Own
    }
}

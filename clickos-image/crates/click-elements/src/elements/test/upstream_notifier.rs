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
    handlers: &[read_write("signal")],
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

    fn read(&self, _view: &View<'_>, handler: &str, _param: &str) -> Text {
        match handler {
            "signal" => text(self.on),
            _ => undeclared(handler),
        }
    }

    fn write(&self, view: &View<'_>, handler: &str, value: &str) -> Result<Change, HandlerError> {
        match handler {
            "signal" => on_value(view, value, |me: &mut Self, on, ctx| {
                me.on = on;
                ctx.set_writable(on);
            }),
            _ => undeclared(handler),
        }
    }
}

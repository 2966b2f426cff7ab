// SPDX-License-Identifier: Apache-2.0
//! Passes packets from each input to the output of the same number, unless that pair is switched off.
//!
//! # Synopsis
//! `Suppressor`
//! # Ports
//! any/same number, agnostic. While a pair is off, what is pushed into it is dropped and nothing can be pulled.
//! # Handlers
//! * `active0`, `active1` ... (read, write): whether the pair is on; all are at the start.
//! * `reset` (write): switches all of them on.
//! # Example
//! `FromDevice(0) -> s :: Suppressor -> ToDevice(1); FromDevice(1) -> [1] s [1] -> ToDevice(0);`
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "Suppressor",
    ports: "-/=",
    flow: "#/#",
    handlers: &[write("reset")],
    port_handlers: &[read_write("active")],
    build: |a| {
        let active = (0..a.outputs()).map(|_| true).collect();
        Some(Box::new(Suppressor { active }))
    },
    ..Class::DEFAULT
};

struct Suppressor {
    active: Vec<bool>,
}

impl Suppressor {
    fn port(&self, handler: &str) -> Option<usize> {
        port_of(handler, "active").filter(|port| *port < self.active.len())
    }
}

impl Element for Suppressor {
    fn push(&mut self, ctx: &mut Context<'_>, port: usize, batch: Batch) {
        if self.active[port] {
            ctx.push(port, batch);
        } else {
            ctx.recycle(batch);
        }
    }

    fn pull(&mut self, ctx: &mut Context<'_>, port: usize, max: usize) -> Batch {
        if self.active[port] {
            ctx.pull(port, max)
        } else {
            ctx.batch()
        }
    }

    fn read(&self, _view: &View<'_>, handler: &str, _param: &str) -> Text {
        match self.port(handler) {
            Some(port) => text(self.active[port]),
            None => undeclared(handler),
        }
    }

    fn write(&self, view: &View<'_>, handler: &str, value: &str) -> Result<Change, HandlerError> {
        if handler == "reset" {
            return on_write(|me: &mut Self, _| me.active.fill(true));
        }
        match self.port(handler) {
            Some(port) => on_value(view, value, move |me: &mut Self, on, _| {
                me.active[port] = on;
            }),
            None => undeclared(handler),
        }
    }
}

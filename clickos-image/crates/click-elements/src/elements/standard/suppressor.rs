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
//! # Differences from Click
//! Also notifies pulling elements about packets at inputs that are switched off; such a pull
//! returns no packet.
//! # Example
//! `FromDevice(0) -> s :: Suppressor -> ToDevice(1); FromDevice(1) -> [1] s [1] -> ToDevice(0);`
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "Suppressor",
    ports: "-/=",
    flow: "#/#",
    handlers: &[command(
        "reset",
        run!(|me: &mut Suppressor, _| me.active.fill(true)),
    )],
    families: &[Family::PerInput(&[read_write(
        "active",
        |me: &mut Suppressor, view| text(me.active[view.port]),
        Suppressor::set,
    )])],
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
    fn set(&self, view: &View<'_>, value: &str) -> Result<Change, HandlerError> {
        let port = view.port;
        on_value(self, view, value, move |me, on, _| me.active[port] = on)
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
}

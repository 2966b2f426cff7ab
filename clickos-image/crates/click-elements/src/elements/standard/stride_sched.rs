// SPDX-License-Identifier: Apache-2.0
//! Pulls from its inputs in proportion to tickets.
//!
//! # Synopsis
//! `StrideSched(TICKETS, ...)`: one number per input, 0 to 32768.
//! # Ports
//! 1 or more/1, pull. An input that has nothing loses its turn; one without tickets is never asked.
//! # Handlers
//! * `tickets0`, `tickets1` ... (read, write): TICKETS of that input.
//! # Example
//! `Queue -> [0] s :: StrideSched(2, 1) -> ToDevice(0); Queue -> [1] s;`
use crate::prelude::*;
use crate::standard::stride::Stride;

pub static ELEMENT: Class = Class {
    name: "StrideSched",
    ports: "1-/1",
    processing: "l/l",
    args: &[rest("TICKETS")],
    port_handlers: &[read_write("tickets")],
    build: |a| {
        let inputs = a.inputs();
        let stride = Stride::from_args(a, inputs)?;
        Some(Box::new(StrideSched { stride }))
    },
    ..Class::DEFAULT
};

struct StrideSched {
    stride: Stride,
}

impl Element for StrideSched {
    fn pull(&mut self, ctx: &mut Context<'_>, _port: usize, max: usize) -> Batch {
        let mut batch = ctx.batch();
        while batch.len() < max {
            let Some(packet) = self.stride.turn(|port| ctx.pull_one(port)) else {
                break;
            };
            batch.push_back(packet);
        }
        batch
    }

    fn read(&self, _view: &View<'_>, handler: &str, _param: &str) -> Text {
        self.stride.read(handler)
    }

    fn write(&self, view: &View<'_>, handler: &str, value: &str) -> Result<Change, HandlerError> {
        match self.stride.port(handler) {
            Some(port) => on_value(view, value, move |me: &mut Self, tickets, _| {
                me.stride.set_tickets(port, tickets);
            }),
            None => undeclared(handler),
        }
    }
}

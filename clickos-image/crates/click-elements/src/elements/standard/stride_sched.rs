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
use crate::standard::stride::{self, Stride};

pub static ELEMENT: Class = Class {
    name: "StrideSched",
    ports: "1-/1",
    processing: "l/l",
    args: &[rest("TICKETS")],
    families: &[Family::PerInput(&[stride::tickets::<StrideSched>()])],
    build: |a| {
        let inputs = a.inputs();
        let stride = Stride::from_args(a, inputs)?;
        Some(Box::new(StrideSched { stride }))
    },
    live: true,
    ..Class::DEFAULT
};

struct StrideSched {
    stride: Stride,
}

part!(StrideSched, stride: Stride);

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

    fn take_state(&mut self, ctx: &mut Context<'_>, old: &mut dyn Element) {
        if let Some(old) = replaced::<Self>(ctx, old) {
            self.stride.take_passes(&old.stride);
        }
    }
}

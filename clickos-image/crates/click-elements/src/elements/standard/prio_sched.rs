// SPDX-License-Identifier: Apache-2.0
//! Pulls from the first input that has something.
//!
//! # Synopsis
//! `PrioSched`; `SimplePrioSched` is the same class.
//! # Ports
//! any/1, pull. Input 0 comes first; the last input gets what is left of the time.
//! # Handlers
//! None of its own.
//! # Example
//! `Queue -> [0] p :: PrioSched -> ToDevice(0); Queue -> [1] p;`
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "PrioSched",
    aliases: &["SimplePrioSched"],
    ports: "-/1",
    processing: "l/l",
    build: |_| Some(Box::new(PrioSched)),
    ..Class::DEFAULT
};

struct PrioSched;

impl Element for PrioSched {
    fn pull(&mut self, ctx: &mut Context<'_>, _port: usize, max: usize) -> Batch {
        let mut batch = ctx.batch();
        for input in 0..ctx.inputs() {
            while batch.len() < max && !ctx.is_known_empty(input) {
                let mut more = ctx.pull(input, max - batch.len());
                let none = more.is_empty();
                batch.append(&mut more);
                ctx.recycle(more);
                if none {
                    break;
                }
            }
        }
        batch
    }
}

// SPDX-License-Identifier: Apache-2.0
//! Pushes a copy of each packet that is pulled out of every further output.
//!
//! # Synopsis
//! `PullTee([N])`: N is the number of outputs, if it is to be checked.
//! # Ports
//! 1/any, pull; output 0 is pulled, the others are pushed to.
//! # Handlers
//! None of its own.
//! # Example
//! `Queue -> t :: PullTee -> ToDevice(0); t[1] -> Print -> Discard;`
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "PullTee",
    ports: "1/1-",
    processing: "l/lh",
    args: &[optional("N")],
    build: |a| {
        let outputs = a.outputs();
        let n = a.or("N", outputs)?;
        if n != outputs {
            a.error("N", format!("{outputs} outputs are in use, not {n}"));
        }
        Some(Box::new(PullTee))
    },
    ..Class::DEFAULT
};

struct PullTee;

impl Element for PullTee {
    fn pull(&mut self, ctx: &mut Context<'_>, _port: usize, max: usize) -> Batch {
        let mut batch = ctx.pull(0, max);
        for packet in batch.iter_mut() {
            for port in 1..ctx.outputs() {
                if let Some(copy) = ctx.pool().duplicate(packet) {
                    ctx.push_one(port, copy);
                }
            }
        }
        batch
    }
}

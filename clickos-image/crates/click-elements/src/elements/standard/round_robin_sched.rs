// SPDX-License-Identifier: Apache-2.0
//! Pulls one packet from each input in turn.
//!
//! # Synopsis
//! `RoundRobinSched`; `SimpleRoundRobinSched` is the same class.
//! # Ports
//! any/1, pull. An input that has nothing is passed over.
//! # Handlers
//! None of its own.
//! # Example
//! `Queue -> [0] rr :: RoundRobinSched -> ToDevice(0); Queue -> [1] rr;`
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "RoundRobinSched",
    aliases: &["SimpleRoundRobinSched"],
    ports: "-/1",
    processing: "l/l",
    build: |_| Some(Box::new(RoundRobinSched { next: 0 })),
    ..Class::DEFAULT
};

struct RoundRobinSched {
    next: usize,
}

impl RoundRobinSched {
    fn pull_next(&mut self, ctx: &mut Context<'_>) -> Option<Packet> {
        let inputs = ctx.inputs();
        for _ in 0..inputs {
            let input = self.next;
            self.next = if input + 1 < inputs { input + 1 } else { 0 };
            if let Some(packet) = ctx.pull_one(input) {
                return Some(packet);
            }
        }
        None
    }
}

impl Element for RoundRobinSched {
    fn pull(&mut self, ctx: &mut Context<'_>, _port: usize, max: usize) -> Batch {
        let mut batch = ctx.batch();
        while batch.len() < max {
            let Some(packet) = self.pull_next(ctx) else {
                break;
            };
            batch.push_back(packet);
        }
        batch
    }
}

// SPDX-License-Identifier: Apache-2.0
//! Sends one packet after the other out of one output after the other.
//!
//! # Synopsis
//! `RoundRobinSwitch`
//! # Ports
//! 1/1 or more, push.
//! # Handlers
//! None of its own.
//! # Example
//! `FromDevice(0) -> rr :: RoundRobinSwitch; rr[0] -> ToDevice(1); rr[1] -> ToDevice(2);`
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "RoundRobinSwitch",
    ports: "1/1-",
    processing: "h/h",
    build: |_| Some(Box::new(RoundRobinSwitch { next: 0 })),
    ..Class::DEFAULT
};

struct RoundRobinSwitch {
    next: usize,
}

impl InPlace for RoundRobinSwitch {
    fn output_port(&mut self, ctx: &mut Context<'_>, _packet: &mut Packet) -> usize {
        let output = self.next;
        self.next = match output + 1 {
            next if next < ctx.outputs() => next,
            _ => 0,
        };
        output
    }
}

impl Element for RoundRobinSwitch {
    in_place!(plain);
}

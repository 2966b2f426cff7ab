// SPDX-License-Identifier: Apache-2.0
//! Sends all packets out of one output.
//!
//! # Synopsis
//! `StaticSwitch(OUTPUT)`: mandatory; packets are dropped if there is no such output.
//! # Ports
//! 1/any, push.
//! # Handlers
//! None of its own.
//! # Example
//! `FromDevice(0) -> s :: StaticSwitch($WHERE); s[0] -> ToDevice(1); s[1] -> Discard;`
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "StaticSwitch",
    ports: "1/-",
    processing: "h/h",
    args: &[mandatory("OUTPUT")],
    build: |a| {
        let output = usize::try_from(a.need::<i64>("OUTPUT")?).ok();
        Some(Box::new(StaticSwitch { output }))
    },
    ..Class::DEFAULT
};

struct StaticSwitch {
    output: Option<usize>,
}

impl Element for StaticSwitch {
    fn push(&mut self, ctx: &mut Context<'_>, _port: usize, batch: Batch) {
        match self.output {
            Some(output) => ctx.push(output, batch),
            None => ctx.recycle(batch),
        }
    }

    fn is_plain(&self) -> bool {
        true
    }
}

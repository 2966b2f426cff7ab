// SPDX-License-Identifier: Apache-2.0
//! Pulls from one input.
//!
//! # Synopsis
//! `StaticPullSwitch(INPUT)`: mandatory; there is nothing to pull if there is no such input.
//! # Ports
//! any/1, pull.
//! # Handlers
//! None of its own.
//! # Example
//! `Queue -> [0] s :: StaticPullSwitch($WHICH) -> ToDevice(0); Queue -> [1] s;`
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "StaticPullSwitch",
    ports: "-/1",
    processing: "l/l",
    args: &[mandatory("INPUT")],
    build: |a| {
        let input = usize::try_from(a.need::<i64>("INPUT")?).ok();
        Some(Box::new(StaticPullSwitch { input }))
    },
    ..Class::DEFAULT
};

struct StaticPullSwitch {
    input: Option<usize>,
}

impl Element for StaticPullSwitch {
    fn pull(&mut self, ctx: &mut Context<'_>, _port: usize, max: usize) -> Batch {
        match self.input {
            Some(input) => ctx.pull(input, max),
            None => ctx.batch(),
        }
    }
}

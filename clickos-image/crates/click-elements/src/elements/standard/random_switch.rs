// SPDX-License-Identifier: Apache-2.0
//! Sends each packet out of a random output.
//!
//! # Synopsis
//! `RandomSwitch`
//! # Ports
//! 1/1 or more, push.
//! # Handlers
//! None of its own.
//! # Example
//! `FromDevice(0) -> r :: RandomSwitch; r[0] -> ToDevice(1); r[1] -> ToDevice(2);`
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "RandomSwitch",
    ports: "1/1-",
    processing: "h/h",
    build: |_| Some(Box::new(RandomSwitch)),
    ..Class::DEFAULT
};

struct RandomSwitch;

impl InPlace for RandomSwitch {
    fn output_port(&mut self, ctx: &mut Context<'_>, _packet: &mut Packet) -> usize {
        let last = u32::try_from(ctx.outputs() - 1).expect("ports are limited");
        let output = ctx.random_range(0, last);
        output as usize
    }
}

impl Element for RandomSwitch {
    in_place!();
}

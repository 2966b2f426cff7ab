// SPDX-License-Identifier: Apache-2.0
//! Lets packets up to a length pass.
//!
//! # Synopsis
//! `CheckLength(LENGTH)`: the longest packet that passes, in bytes; mandatory.
//! # Ports
//! 1/1-2, agnostic. Output 1 (push) gets longer packets; they are dropped if it is not connected.
//! # Handlers
//! * `length` (read, write): LENGTH.
//! # Example
//! `FromDevice(0) -> c :: CheckLength(1500) -> ToDevice(1); c[1] -> Discard;`
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "CheckLength",
    ports: "1/1-2",
    processing: "a/ah",
    args: &[mandatory("LENGTH")],
    handlers: &[read_write(
        "length",
        |me: &mut CheckLength, _| text(me.length),
        set!(|me, length, _| me.length = length),
    )],
    build: |a| {
        Some(Box::new(CheckLength {
            length: a.need("LENGTH")?,
        }))
    },
    ..Class::DEFAULT
};

struct CheckLength {
    length: usize,
}

impl InPlace for CheckLength {
    fn output_port(&mut self, _ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        usize::from(packet.len() > self.length)
    }
}

impl Element for CheckLength {
    in_place!(plain);
}

// SPDX-License-Identifier: Apache-2.0
//! Removes bytes from the front of packets.
//!
//! # Synopsis
//! `Strip(LENGTH)`: LENGTH in bytes, mandatory. A shorter packet becomes empty.
//! # Ports
//! 1/1, agnostic.
//! # Handlers
//! * `length` (read, write): LENGTH.
//! # Differences from Click
//! `length` is a handler.
//! # Example
//! `FromDevice(0) -> Strip(14) -> CheckIPHeader -> Discard;`
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "Strip",
    args: &[mandatory("LENGTH")],
    handlers: &[read_write(
        "length",
        |me: &mut Strip, _| text(me.length),
        set!(|me, length, _| me.length = length),
    )],
    build: |a| {
        Some(Box::new(Strip {
            length: a.need("LENGTH")?,
        }))
    },
    ..Class::DEFAULT
};

struct Strip {
    length: usize,
}

impl InPlace for Strip {
    fn output_port(&mut self, _ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        packet.pull(self.length);
        0
    }
}

impl Element for Strip {
    in_place!(plain);
}

// SPDX-License-Identifier: Apache-2.0
//! Puts bytes that were stripped back in front of packets.
//!
//! # Synopsis
//! `Unstrip(LENGTH)`: LENGTH in bytes, mandatory. The bytes are those that an earlier `Strip`
//! removed; where there were none their content is unspecified.
//! # Ports
//! 1/1, agnostic.
//! # Handlers
//! None of its own.
//! # Example
//! `Strip(14) -> CheckIPHeader -> Unstrip(14)`
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "Unstrip",
    args: &[mandatory("LENGTH")],
    build: |a| {
        let length: usize = a.need("LENGTH")?;
        if length > MAX {
            a.error(
                "LENGTH",
                format!("{length} is out of range, the most is {MAX}"),
            );
        }
        Some(Box::new(Unstrip { length }))
    },
    ..Class::DEFAULT
};

/// No header that could have been stripped is longer.
const MAX: usize = 65_535;

struct Unstrip {
    length: usize,
}

impl InPlace for Unstrip {
    fn output_port(&mut self, _ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        kept_if(packet.push(self.length))
    }
}

impl Element for Unstrip {
    in_place!(plain);
}

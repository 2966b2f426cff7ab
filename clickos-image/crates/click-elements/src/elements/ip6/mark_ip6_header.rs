// SPDX-License-Identifier: Apache-2.0
//! Says where packets have their IPv6 header.
//!
//! # Synopsis
//! `MarkIP6Header([OFFSET])`: at byte OFFSET (default 0). The header annotation is set, and nothing is checked.
//! # Ports
//! 1/1, agnostic. Packets too short for a header get no annotation.
//! # Handlers
//! None of its own.
//! # Example
//! `FromDevice(0) -> c :: Classifier(12/86dd); c -> MarkIP6Header(14) -> IP6Print(in) -> Discard;`
use crate::ip6::HEADER;
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "MarkIP6Header",
    args: &[optional("OFFSET")],
    build: |a| {
        Some(Box::new(MarkIP6Header {
            offset: a.or("OFFSET", 0)?,
        }))
    },
    ..Class::DEFAULT
};

struct MarkIP6Header {
    offset: usize,
}

impl InPlace for MarkIP6Header {
    fn output_port(&mut self, _ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        match packet.len().checked_sub(self.offset) {
            Some(HEADER..) => packet.set_network(self.offset, HEADER),
            _ => packet.clear_network(),
        }
        0
    }
}

impl Element for MarkIP6Header {
    in_place!(plain);
}

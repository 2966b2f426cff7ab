// SPDX-License-Identifier: Apache-2.0
//! Sets the aggregate annotation of packets from their paint.
//!
//! # Synopsis
//! `AggregatePaint([BITS, INCREMENTAL])`: the aggregate becomes the lowest BITS bits (default 8, 1 to 8) of the paint. With
//! INCREMENTAL (default false) they are put after the bits of the aggregate there was.
//! # Ports
//! 1/1, agnostic.
//! # Handlers
//! None of its own.
//! # Example
//! `... -> Paint(3) -> AggregatePaint -> AggregateCounter -> ...`
use click_core::anno::{AGGREGATE, PAINT};

use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "AggregatePaint",
    args: &[optional("BITS"), keyword("INCREMENTAL")],
    build: |a| {
        let (bits, incremental) = (a.or("BITS", 8u32)?, a.or("INCREMENTAL", false)?);
        if !(1..=8).contains(&bits) {
            a.error("BITS", format!("{bits} is out of range, it is 1 to 8"));
            return None;
        }
        Some(Box::new(AggregatePaint { bits, incremental }))
    },
    ..Class::DEFAULT
};

struct AggregatePaint {
    bits: u32,
    incremental: bool,
}

impl InPlace for AggregatePaint {
    const USE: Use = Use::Writes;

    fn output_port(&mut self, _ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        let anno = packet.anno_mut();
        let paint = u32::from(anno.u8(PAINT)) & ((1 << self.bits) - 1);
        let before = match self.incremental {
            true => anno.u32(AGGREGATE) << self.bits,
            false => 0,
        };
        anno.set_u32(AGGREGATE, before | paint);
        0
    }
}

impl Element for AggregatePaint {
    in_place!(plain);
}

// SPDX-License-Identifier: Apache-2.0
//! Sets the timestamp annotation of packets.
//!
//! # Synopsis
//! `SetTimestamp([TIMESTAMP, FIRST])`: TIMESTAMP in seconds since the epoch, default the time it is.
//! With FIRST (default false) the annotation of a flow's first packet is set instead.
//! # Ports
//! 1/1, agnostic.
//! # Handlers
//! None of its own.
//! # Example
//! `InfiniteSource -> SetTimestamp -> Queue -> DelayUnqueue(0.1) -> Discard;`
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "SetTimestamp",
    args: &[optional("TIMESTAMP"), keyword("FIRST")],
    build: |a| {
        let (time, first) = (a.opt::<Span>("TIMESTAMP"), a.or("FIRST", false));
        Some(Box::new(SetTimestamp {
            ns: time?.map(|t| t.ns),
            first: first?,
        }))
    },
    ..Class::DEFAULT
};

/// Offset of the annotation with the timestamp of a flow's first packet, eight bytes.
const FIRST_TIMESTAMP: usize = 32;

struct SetTimestamp {
    ns: Option<u64>,
    first: bool,
}

impl Element for SetTimestamp {
    fn process(&mut self, ctx: &mut Context<'_>, mut packet: Packet) -> Out {
        let ns = self.ns.unwrap_or(ctx.now_ns());
        if self.first {
            for (offset, byte) in (FIRST_TIMESTAMP..).zip(ns.to_le_bytes()) {
                packet.anno_mut().set_u8(offset, byte);
            }
        } else {
            packet.set_timestamp_ns(ns);
        }
        Out::Port(0, packet)
    }
}

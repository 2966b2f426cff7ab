// SPDX-License-Identifier: Apache-2.0
//! Writes the timestamp annotation of packets into their data.
//!
//! # Synopsis
//! `StoreTimestamp(OFFSET)` or `StoreTimestamp(TAIL true)`: at OFFSET, or after the data. The packet grows as
//! needed. Eight bytes: nanoseconds since the epoch, little-endian.
//! # Ports
//! 1/1, agnostic. Packets that would become too long are dropped.
//! # Handlers
//! None of its own.
//! # Example
//! `FromDevice(0) -> SetTimestamp -> StoreTimestamp(TAIL true) -> ToDevice(1);`
use crate::prelude::*;
use crate::standard::time::Time;

pub static ELEMENT: Class = Class {
    name: "StoreTimestamp",
    args: &[optional("OFFSET"), keyword("TAIL")],
    build: |a| {
        let (offset, tail) = (a.opt("OFFSET"), a.or("TAIL", false));
        let offset = offset?;
        if offset.is_some() == tail? {
            let got = if offset.is_some() { "both" } else { "none" };
            a.error(
                "OFFSET",
                format!("expected one of OFFSET and TAIL, got {got}"),
            );
        }
        Some(Box::new(StoreTimestamp { offset }))
    },
    ..Class::DEFAULT
};

struct StoreTimestamp {
    /// Without one, after the data.
    offset: Option<usize>,
}

/// Bytes of a timestamp.
const SIZE: usize = 8;

impl InPlace for StoreTimestamp {
    const USE: Use = Use::Writes;

    fn output_port(&mut self, _ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        let offset = self.offset.unwrap_or(packet.len());
        let end = offset.saturating_add(SIZE);
        let missing = end.saturating_sub(packet.len());
        if end > click_core::MAX_PACKET || !packet.put(missing) {
            return DROPPED;
        }
        let bytes = Time::of(packet).0.to_le_bytes();
        packet.data_mut()[offset..end].copy_from_slice(&bytes);
        0
    }
}

impl Element for StoreTimestamp {
    in_place!(plain);
}

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
//! # Differences from Click
//! DELTA is unknown. The first timestamp annotation is nanoseconds, little-endian.
//! # Example
//! `InfiniteSource -> SetTimestamp -> Queue -> DelayUnqueue(0.1) -> Discard;`
use crate::prelude::*;
use crate::standard::time::Time;

pub static ELEMENT: Class = Class {
    name: "SetTimestamp",
    args: &[optional("TIMESTAMP"), keyword("FIRST")],
    build: |a| {
        let (time, first) = (a.opt("TIMESTAMP"), a.or("FIRST", false));
        Some(Box::new(SetTimestamp {
            time: time?,
            first: first?,
        }))
    },
    ..Class::DEFAULT
};

struct SetTimestamp {
    time: Option<Time>,
    first: bool,
}

impl InPlace for SetTimestamp {
    fn output_port(&mut self, ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        let time = self.time.unwrap_or(Time::now(ctx));
        if self.first {
            time.put_first(packet);
        } else {
            time.put(packet);
        }
        0
    }
}

impl Element for SetTimestamp {
    in_place!();
}

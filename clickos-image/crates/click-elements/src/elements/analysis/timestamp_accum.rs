// SPDX-License-Identifier: Apache-2.0
//! Adds up how long ago packets got their timestamps.
//!
//! # Synopsis
//! `TimestampAccum()`
//! # Ports
//! 1/1, agnostic.
//! # Handlers
//! * `count` (read): packets. `time` (read): the sum in seconds. `average_time` (read): that of one packet, 0 if there was none.
//! * `reset_counts` (write): sets both to 0.
//! # Example
//! `FromDevice(0) -> SetTimestamp -> Queue -> Unqueue -> t :: TimestampAccum -> ToDevice(1);`
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "TimestampAccum",
    handlers: &[
        read("count", |me: &mut TimestampAccum, _| text(me.count)),
        read("time", |me, _| text(seconds(me.ns))),
        read("average_time", |me, _| {
            text(seconds(me.ns) / me.count.max(1) as f64)
        }),
        command("reset_counts", run!(|me, _| (me.count, me.ns) = (0, 0))),
    ],
    build: |_| Some(Box::new(TimestampAccum { count: 0, ns: 0 })),
    ..Class::DEFAULT
};

struct TimestampAccum {
    count: u64,
    /// Nanoseconds of all packets.
    ns: i128,
}

/// Seconds.
fn seconds(ns: i128) -> f64 {
    ns as f64 / 1e9
}

impl InPlace for TimestampAccum {
    fn output_port(&mut self, ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        self.count += 1;
        self.ns += i128::from(ctx.now_ns()) - i128::from(packet.timestamp_ns());
        0
    }
}

impl Element for TimestampAccum {
    in_place!();
}

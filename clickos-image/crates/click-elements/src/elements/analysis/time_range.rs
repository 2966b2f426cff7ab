// SPDX-License-Identifier: Apache-2.0
//! Notes the earliest and the latest timestamp of packets.
//!
//! # Synopsis
//! `TimeRange([SIMPLE])`: with SIMPLE (default false) packets come in the order of their time, and the last one is
//! taken for the latest.
//! # Ports
//! 1/1, agnostic.
//! # Handlers
//! * `first`, `last` (read): the earliest and the latest time, 0 before the first packet.
//! * `range` (read): both. `interval` (read): the time between them.
//! * `reset` (write): forgets both.
//! # Example
//! `FromDump(in.pcap, STOP true) -> t :: TimeRange -> Discard; DriverManager(pause, print t.interval);`
use crate::prelude::*;
use crate::standard::time::Time;

pub static ELEMENT: Class = Class {
    name: "TimeRange",
    args: &[keyword("SIMPLE")],
    handlers: &[
        read("first", |me: &mut TimeRange, _| text(me.first)),
        read("last", |me, _| text(me.last)),
        read("range", |me, _| text(format!("{} {}", me.first, me.last))),
        read("interval", |me, _| text(me.last.minus(me.first))),
        command(
            "reset",
            run!(|me, _| (me.first, me.last) = (Time(0), Time(0))),
        ),
    ],
    build: |a| {
        Some(Box::new(TimeRange {
            simple: a.or("SIMPLE", false)?,
            first: Time(0),
            last: Time(0),
        }))
    },
    ..Class::DEFAULT
};

struct TimeRange {
    simple: bool,
    first: Time,
    last: Time,
}

impl InPlace for TimeRange {
    fn output_port(&mut self, _ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        let time = Time::of(packet);
        if self.first.is_unset() {
            (self.first, self.last) = (time, time);
        } else if self.simple {
            self.last = time;
        } else {
            (self.first, self.last) = (self.first.min(time), self.last.max(time));
        }
        0
    }
}

impl Element for TimeRange {
    in_place!(plain);
}

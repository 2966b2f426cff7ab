// SPDX-License-Identifier: Apache-2.0
//! Adds a time to the timestamp annotation of packets.
//!
//! # Synopsis
//! `AdjustTimestamp([TIME, FIRST, ALL])`: adds TIME (default 0), which may be negative, in seconds. Packets without a
//! timestamp are changed only with ALL (default false). With FIRST (default false) the annotation of a flow's first
//! packet is changed instead.
//! # Ports
//! 1/1, agnostic.
//! # Handlers
//! * `time` (read, write): TIME.
//! # Example
//! `FromDump(night.pcap) -> AdjustTimestamp(-3600) -> ToDump(winter.pcap);`
use crate::prelude::*;
use crate::standard::time::Time;

pub static ELEMENT: Class = Class {
    name: "AdjustTimestamp",
    args: &[optional("TIME"), keyword("FIRST"), keyword("ALL")],
    handlers: &[read_write(
        "time",
        |me: &mut AdjustTimestamp, _| text(me.time),
        set!(|me, time, _| me.time = time),
    )],
    build: |a| {
        let (time, first) = (a.or("TIME", Time(0)), a.or("FIRST", false));
        let all = a.or("ALL", false);
        Some(Box::new(AdjustTimestamp {
            time: time?,
            first: first?,
            all: all?,
        }))
    },
    ..Class::DEFAULT
};

struct AdjustTimestamp {
    time: Time,
    first: bool,
    all: bool,
}

impl InPlace for AdjustTimestamp {
    fn output_port(&mut self, _ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        let before = match self.first {
            true => Time::first_of(packet),
            false => Time::of(packet),
        };
        if before.is_unset() && !self.all {
            return 0;
        }
        let after = before.plus(self.time);
        if self.first {
            after.put_first(packet);
        } else {
            after.put(packet);
        }
        0
    }
}

impl Element for AdjustTimestamp {
    in_place!(plain);
}

// SPDX-License-Identifier: Apache-2.0
//! Replaces the timestamp annotation of packets by a difference.
//!
//! # Synopsis
//! `SetTimestampDelta([TYPE])`: the time since the first packet (`RANGE`, the default), until now (`NOW`), or since
//! the time of the flow's first packet (`FIRST`). Packets without a timestamp stay as they are.
//! # Ports
//! 1/1, agnostic.
//! # Handlers
//! * `first` (read): the time of the first packet, with RANGE.
//! * `reset` (write): forgets it.
//! # Example
//! `FromDump(in.pcap) -> SetTimestampDelta -> ToIPSummaryDump(-, FIELDS timestamp ip_src);`
use crate::prelude::*;
use crate::standard::time::Time;

pub static ELEMENT: Class = Class {
    name: "SetTimestampDelta",
    args: &[keyword("TYPE")],
    handlers: &[
        read("first", |me: &mut SetTimestampDelta, _| text(me.first)),
        command("reset", run!(|me, _| me.first = Time(0))),
    ],
    build: |a| {
        let kind = match a.or("TYPE", "RANGE".to_string())?.as_str() {
            "RANGE" => Kind::Range,
            "NOW" => Kind::Now,
            "FIRST" => Kind::First,
            other => {
                a.error(
                    "TYPE",
                    format!("expected RANGE, NOW or FIRST, got \"{other}\""),
                );
                return None;
            }
        };
        Some(Box::new(SetTimestampDelta {
            kind,
            first: Time(0),
        }))
    },
    ..Class::DEFAULT
};

#[derive(Clone, Copy)]
enum Kind {
    Range,
    Now,
    First,
}

struct SetTimestampDelta {
    kind: Kind,
    first: Time,
}

impl SetTimestampDelta {
    fn delta(&mut self, ctx: &Context<'_>, packet: &Packet) -> Time {
        let time = Time::of(packet);
        match self.kind {
            Kind::Now => Time::now(ctx).minus(time),
            Kind::First => time.minus(Time::first_of(packet)),
            Kind::Range => {
                if self.first.is_unset() {
                    self.first = time;
                }
                time.minus(self.first)
            }
        }
    }
}

impl InPlace for SetTimestampDelta {
    fn output_port(&mut self, ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        if !Time::of(packet).is_unset() {
            self.delta(ctx, packet).put(packet);
        }
        0
    }
}

impl Element for SetTimestampDelta {
    in_place!();
}

// SPDX-License-Identifier: Apache-2.0
//! Counts packets and bytes and their rate between the first packet and the last.
//!
//! # Synopsis
//! `AverageCounter([IGNORE])`: what comes in the first IGNORE seconds (default 0) after the first packet does
//! not count. AverageCounterMP and AverageCounterIMP are other names for it.
//! # Ports
//! 1/1, agnostic.
//! # Handlers
//! * `count`, `byte_count` (read): packets and bytes.
//! * `rate`, `byte_rate` (read): a second, over the time from the first packet to the last.
//! * `reset` (write): begins again with the next packet.
//! # Example
//! `FromDevice(0) -> c :: AverageCounter -> Discard;`
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "AverageCounter",
    aliases: &["AverageCounterMP", "AverageCounterIMP"],
    args: &[optional("IGNORE")],
    handlers: &[
        read("count", |me: &mut AverageCounter, _| text(me.seen.count)),
        read("byte_count", |me, _| text(me.seen.bytes)),
        read("rate", |me, _| text(me.rate(me.seen.count))),
        read("byte_rate", |me, _| text(me.rate(me.seen.bytes))),
        command("reset", run!(|me, _| me.seen = Seen::default())),
    ],
    build: |a| {
        let ignore_s = a.or("IGNORE", 0u32)?;
        Some(Box::new(AverageCounter {
            ignore_ns: u64::from(ignore_s) * 1_000_000_000,
            seen: Seen::default(),
        }))
    },
    ..Class::DEFAULT
};

#[derive(Default)]
struct Seen {
    count: u64,
    bytes: u64,
    first_ns: Option<u64>,
    last_ns: u64,
}

struct AverageCounter {
    ignore_ns: u64,
    seen: Seen,
}

impl AverageCounter {
    /// `amount` a second; less than a millisecond counts as one, as in Click.
    fn rate(&self, amount: u64) -> f64 {
        let first = self.seen.first_ns.unwrap_or(self.seen.last_ns);
        let counted_ns = (self.seen.last_ns - first).saturating_sub(self.ignore_ns);
        let counted_ms = (counted_ns / 1_000_000).max(1);
        amount as f64 * 1000.0 / counted_ms as f64
    }
}

impl InPlace for AverageCounter {
    fn output_port(&mut self, ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        let now = ctx.now_ns();
        let first = *self.seen.first_ns.get_or_insert(now);
        if now - first >= self.ignore_ns {
            self.seen.count += 1;
            self.seen.bytes += packet.len() as u64;
        }
        self.seen.last_ns = now;
        0
    }
}

impl Element for AverageCounter {
    in_place!();
}

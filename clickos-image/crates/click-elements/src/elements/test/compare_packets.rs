// SPDX-License-Identifier: Apache-2.0
//! Compares the packets of two streams pair by pair.
//!
//! # Synopsis
//! `ComparePackets([TIMESTAMP])`: length, data, network header and, unless TIMESTAMP (default true) is false, timestamps.
//! # Ports
//! 2/2, pull. A packet leaves when its counterpart was pulled, or will never come.
//! # Handlers
//! * `diffs` (read): pairs that differ. `diff_details` (read): how many in which way. `all_same` (read).
//! # Differences from Click
//! Packets of different lengths have different data.
//! # Example
//! `a -> [0] c :: ComparePackets [0] -> Discard; b -> [1] c [1] -> Discard;`
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "ComparePackets",
    ports: "2/2",
    processing: "l/l",
    args: &[keyword("TIMESTAMP")],
    handlers: &[
        read("diffs", |me: &mut ComparePackets, _| text(me.diffs)),
        read("diff_details", |me, _| {
            let line = |(count, way): (&u64, &&str)| format!("{count}\t{way}\n");
            Ok(me.details.iter().zip(&WAYS).map(line).collect())
        }),
        read("all_same", |me, _| text(me.diffs == 0)),
    ],
    build: |a| {
        Some(Box::new(ComparePackets {
            timestamp: a.or("TIMESTAMP", true)?,
            waiting: [None, None],
            compared: [None, None],
            diffs: 0,
            details: [0; WAYS.len()],
        }))
    },
    ..Class::DEFAULT
};

/// In what packets can differ.
const WAYS: [&str; 8] = [
    "different length",
    "different data",
    "different timestamp",
    "different network header offset",
    "different network header length",
    "different network header presence",
    "more packets in [0]",
    "more packets in [1]",
];
/// Index of the first way that concerns streams, not pairs.
const MORE: usize = 6;

struct ComparePackets {
    timestamp: bool,
    /// Packets whose counterparts were not pulled yet, by input.
    waiting: [Option<Packet>; 2],
    /// Packets that may leave, by output.
    compared: [Option<Packet>; 2],
    diffs: u64,
    details: [u64; WAYS.len()],
}

/// Offset and length of the network header.
fn network(packet: &Packet) -> Option<(isize, isize)> {
    let start = packet.network_offset()?;
    Some((start, packet.transport_offset()? - start))
}

impl ComparePackets {
    fn compare(&mut self, a: &Packet, b: &Packet) {
        let (na, nb) = (network(a), network(b));
        let both = na.zip(nb);
        let differs = [
            a.len() != b.len(),
            a.data() != b.data(),
            self.timestamp && a.timestamp_ns() != b.timestamp_ns(),
            both.is_some_and(|(a, b)| a.0 != b.0),
            both.is_some_and(|(a, b)| a.1 != b.1),
            na.is_some() != nb.is_some(),
        ];
        for (count, differs) in self.details.iter_mut().zip(differs) {
            *count += u64::from(differs);
        }
        self.diffs += u64::from(differs.contains(&true));
    }

    /// The stream at `port` has come to an end, the other has not.
    fn ended(&mut self, port: usize) {
        let other = 1 - port;
        if let Some(packet) = self.waiting[other].take() {
            self.details[MORE + other] += 1;
            self.diffs += 1;
            self.compared[other] = Some(packet);
        }
    }

    fn next(&mut self, ctx: &mut Context<'_>, port: usize) -> Option<Packet> {
        if self.compared[port].is_some() || self.waiting[port].is_some() {
            return self.compared[port].take();
        }
        let Some(packet) = ctx.pull_one(port) else {
            if !ctx.readable(port) {
                self.ended(port);
            }
            return None;
        };
        let Some(counterpart) = self.waiting[1 - port].take() else {
            self.waiting[port] = Some(packet);
            return None;
        };
        match port {
            0 => self.compare(&packet, &counterpart),
            _ => self.compare(&counterpart, &packet),
        }
        self.compared[1 - port] = Some(counterpart);
        Some(packet)
    }
}

impl Element for ComparePackets {
    fn initialize(&mut self, ctx: &mut Context<'_>) -> Result<(), String> {
        ctx.set_readable(true);
        Ok(())
    }

    fn pull(&mut self, ctx: &mut Context<'_>, port: usize, _max: usize) -> Batch {
        let mut batch = ctx.batch();
        batch.extend(self.next(ctx, port));
        let left = self.compared.iter().any(Option::is_some);
        let more = left || ctx.readable(0) || ctx.readable(1);
        // off and on again, so that the other output is looked at, too
        ctx.set_readable(false);
        ctx.set_readable(more);
        batch
    }

    /// An input that had come to an end has packets again.
    fn run_task(&mut self, ctx: &mut Context<'_>) -> bool {
        ctx.set_readable(true);
        false
    }

    fn signal(&self) -> Signal {
        Signal::Own
    }
}

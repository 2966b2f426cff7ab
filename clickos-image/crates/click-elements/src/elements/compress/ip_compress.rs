// SPDX-License-Identifier: Apache-2.0
//! Compresses the payload of IP packets (IPComp with DEFLATE, RFC 3173 and RFC 2394).
//!
//! # Synopsis
//! `IPCompress([THRESHOLD])`: payloads of fewer bytes than THRESHOLD (default 90, as RFC 2394 advises) stay as they are.
//! # Ports
//! 1/1, agnostic. Packets need a marked IP header. A packet that does not become shorter leaves unchanged, and so do
//! fragments and compressed packets: fragment behind this element.
//! # Handlers
//! * `threshold` (read, write): THRESHOLD.
//! * `packets` (read): packets that were compressed. `bytes_in`, `bytes_out` (read): bytes of their payloads before and after.
//! * `reset` (write): the counters begin at 0.
//! # Example
//! `... -> CheckIPHeader -> IPCompress -> IPFragmenter(1500) -> ...`
use crate::ip_comp::Compressor;
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "IPCompress",
    args: &[optional("THRESHOLD")],
    handlers: &[
        read_write(
            "threshold",
            |me: &mut IPCompress, _| text(me.threshold),
            set!(|me, threshold, _| me.threshold = threshold),
        ),
        read("packets", |me, _| text(me.packets)),
        read("bytes_in", |me, _| text(me.bytes_in)),
        read("bytes_out", |me, _| text(me.bytes_out)),
        command("reset", run!(|me, _| me.reset())),
    ],
    build: |a| {
        let threshold = a.or("THRESHOLD", 90)?;
        Some(Box::new(IPCompress {
            threshold,
            compressor: Compressor::new(),
            packets: 0,
            bytes_in: 0,
            bytes_out: 0,
        }))
    },
    ..Class::DEFAULT
};

struct IPCompress {
    threshold: usize,
    compressor: Compressor,
    packets: u64,
    bytes_in: u64,
    bytes_out: u64,
}

impl IPCompress {
    fn reset(&mut self) {
        (self.packets, self.bytes_in, self.bytes_out) = (0, 0, 0);
    }
}

impl InPlace for IPCompress {
    const USE: Use = Use::Writes;

    fn output_port(&mut self, _ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        if let Some((before, after)) = self.compressor.compress(packet, self.threshold) {
            self.packets += 1;
            self.bytes_in += before as u64;
            self.bytes_out += after as u64;
        }
        0
    }
}

impl Element for IPCompress {
    in_place!(plain);

    fn take_state(&mut self, _ctx: &mut Context<'_>, old: &mut dyn Element) {
        if let Some(old) = old.as_any_mut().downcast_mut::<Self>() {
            (self.packets, self.bytes_in, self.bytes_out) =
                (old.packets, old.bytes_in, old.bytes_out);
        }
    }
}

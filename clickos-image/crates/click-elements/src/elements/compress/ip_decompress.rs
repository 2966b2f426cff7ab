// SPDX-License-Identifier: Apache-2.0
//! Decompresses the payload of IP packets (IPComp with DEFLATE, RFC 3173 and RFC 2394).
//!
//! # Synopsis
//! `IPDecompress([MAX])`: a whole payload has at most MAX bytes (default and limit 65515).
//! # Ports
//! 1/1-2, agnostic. Packets need a marked IP header. Packets that are not compressed leave by output 0, unchanged.
//! Output 1 gets packets with a broken or too long stream, of another algorithm, and compressed fragments: put
//! fragments together in front of this element. Without output 1 they are dropped.
//! # Handlers
//! * `packets` (read): packets that are whole again. `bytes_in`, `bytes_out` (read): bytes of their payloads before and after.
//! * `broken` (read): packets for output 1.
//! * `reset` (write): the counters begin at 0.
//! # Example
//! `... -> CheckIPHeader -> IPReassembler -> IPDecompress(1480) -> ...`
use crate::ip_comp::{Decompressor, LONGEST, Outcome};
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "IPDecompress",
    ports: "1/1-2",
    processing: "a/ah",
    args: &[optional("MAX")],
    handlers: &[
        read("packets", |me: &mut IPDecompress, _| text(me.packets)),
        read("bytes_in", |me, _| text(me.bytes_in)),
        read("bytes_out", |me, _| text(me.bytes_out)),
        read("broken", |me, _| text(me.broken)),
        command("reset", run!(|me, _| me.reset())),
    ],
    build: |a| {
        let most = a.or("MAX", LONGEST)?;
        if most > LONGEST {
            a.error(
                "MAX",
                format!("{most} is out of range, the most is {LONGEST}"),
            );
            return None;
        }
        Some(Box::new(IPDecompress {
            decompressor: Decompressor::new(most),
            packets: 0,
            bytes_in: 0,
            bytes_out: 0,
            broken: 0,
        }))
    },
    ..Class::DEFAULT
};

struct IPDecompress {
    decompressor: Decompressor,
    packets: u64,
    bytes_in: u64,
    bytes_out: u64,
    broken: u64,
}

impl IPDecompress {
    fn reset(&mut self) {
        (self.packets, self.bytes_in, self.bytes_out, self.broken) = (0, 0, 0, 0);
    }
}

impl InPlace for IPDecompress {
    const USE: Use = Use::Writes;

    fn output_port(&mut self, _ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        match self.decompressor.decompress(packet) {
            Outcome::Plain => 0,
            Outcome::Whole(before, after) => {
                self.packets += 1;
                self.bytes_in += before as u64;
                self.bytes_out += after as u64;
                0
            }
            Outcome::Broken => {
                self.broken += 1;
                1
            }
        }
    }
}

impl Element for IPDecompress {
    in_place!(plain);

    fn take_state(&mut self, _ctx: &mut Context<'_>, old: &mut dyn Element) {
        if let Some(old) = old.as_any_mut().downcast_mut::<Self>() {
            (self.packets, self.bytes_in) = (old.packets, old.bytes_in);
            (self.bytes_out, self.broken) = (old.bytes_out, old.broken);
        }
    }
}

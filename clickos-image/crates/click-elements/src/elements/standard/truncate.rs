// SPDX-License-Identifier: Apache-2.0
//! Cuts packets to a length.
//!
//! # Synopsis
//! `Truncate(LENGTH [, EXTRA_LENGTH])`: what is longer than LENGTH bytes loses its end. With EXTRA_LENGTH
//! (default true) the bytes that were cut off are added to the extra length annotation.
//! # Ports
//! 1/1, agnostic.
//! # Handlers
//! * `nbytes` (read, write): LENGTH.
//! # Example
//! `FromDevice(0) -> Truncate(64) -> ToDump(headers.pcap);`
use click_core::anno;

use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "Truncate",
    args: &[mandatory("LENGTH"), keyword("EXTRA_LENGTH")],
    handlers: &[read_write(
        "nbytes",
        |me: &mut Truncate, _| text(me.length),
        set!(|me, length, _| me.length = length),
    )],
    build: |a| {
        let (length, extra) = (a.need("LENGTH"), a.or("EXTRA_LENGTH", true));
        Some(Box::new(Truncate {
            length: length?,
            extra: extra?,
        }))
    },
    live: true,
    ..Class::DEFAULT
};

struct Truncate {
    length: usize,
    extra: bool,
}

impl InPlace for Truncate {
    fn output_port(&mut self, _ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        let cut = packet.len().saturating_sub(self.length);
        if cut > 0 && self.extra {
            let before = packet.anno().u32(anno::EXTRA_LENGTH);
            let after = before.saturating_add(u32::try_from(cut).unwrap_or(u32::MAX));
            packet.anno_mut().set_u32(anno::EXTRA_LENGTH, after);
        }
        packet.take(cut);
        0
    }
}

impl Element for Truncate {
    in_place!(plain);
}

// SPDX-License-Identifier: Apache-2.0
//! Marks IP packets as having met congestion.
//!
//! # Synopsis
//! `MarkIPCE([FORCE])`: sets both bits of the explicit congestion notification (RFC
//! 3168). The element drops packets without ECN capability, unless FORCE (default false). The
//! checksum follows.
//! # Ports
//! 1/1, agnostic. The header annotation must be set; packets without it are dropped.
//! # Handlers
//! * `drops` (read): packets that were dropped.
//! # Differences from Click
//! Packets without a marked IP header are dropped and counted in `drops`.
//! # Example
//! `red :: RED(5, 50, 0.02); red[1] -> MarkIPCE -> ...`
use crate::ip_packet::header_mut;
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "MarkIPCE",
    args: &[optional("FORCE")],
    handlers: &[read("drops", |me: &mut MarkIPCE, _| text(me.drops))],
    build: |a| {
        Some(Box::new(MarkIPCE {
            force: a.or("FORCE", false)?,
            drops: 0,
        }))
    },
    ..Class::DEFAULT
};

struct MarkIPCE {
    force: bool,
    drops: u64,
}

impl InPlace for MarkIPCE {
    const USE: Use = Use::Writes;

    fn output_port(&mut self, _ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        let header = header_mut(packet);
        let Some(mut header) = header.filter(|h| self.force || h.tos() & 3 != 0) else {
            self.drops += 1;
            return DROPPED;
        };
        header.set_tos(header.tos() | 3);
        0
    }
}

impl Element for MarkIPCE {
    in_place!(plain);

    fn take_state(&mut self, _ctx: &mut Context<'_>, old: &mut dyn Element) {
        if let Some(old) = old.as_any_mut().downcast_mut::<Self>() {
            self.drops = old.drops;
        }
    }
}

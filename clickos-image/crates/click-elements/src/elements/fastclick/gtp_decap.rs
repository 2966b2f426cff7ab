// SPDX-License-Identifier: Apache-2.0
//! Takes packets out of GTP-U (3GPP TS 29.281).
//!
//! # Synopsis
//! `GTPDecap()`: removes the header with its optional fields and extension headers, and what is behind the carried
//! packet. Sets the aggregate annotation to the tunnel endpoint.
//! # Ports
//! 1/1, agnostic. Packets that are no whole GTP-U message with a packet are dropped.
//! # Handlers
//! * `drops` (read): packets dropped.
//! # Differences from Click
//! See `NumberPacket`.
//! # Example
//! `CheckIPHeader -> Strip(28) -> GTPDecap -> CheckIPHeader -> ...`
use click_core::anno;

use crate::gtp::Carried;
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "GTPDecap",
    handlers: &[read("drops", |me: &mut GTPDecap, _| text(me.drops))],
    build: |_| Some(Box::new(GTPDecap { drops: 0 })),
    live: true,
    ..Class::DEFAULT
};

struct GTPDecap {
    drops: u64,
}

impl InPlace for GTPDecap {
    const USE: Use = Use::Writes;

    fn output_port(&mut self, _ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        let Some(Carried { teid, begin, end }) = Carried::find(packet.data()) else {
            self.drops += 1;
            return DROPPED;
        };
        packet.take(packet.len() - end);
        packet.pull(begin);
        packet.anno_mut().set_u32(anno::AGGREGATE, teid);
        0
    }
}

impl Element for GTPDecap {
    in_place!(plain);

    fn take_state(&mut self, ctx: &mut Context<'_>, old: &mut dyn Element) {
        if let Some(old) = replaced::<Self>(ctx, old) {
            self.drops = old.drops;
        }
    }
}

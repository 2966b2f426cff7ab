// SPDX-License-Identifier: Apache-2.0
//! Puts headers of GTP-U in front of packets (3GPP TS 29.281).
//!
//! # Synopsis
//! `GTPEncap(TEID)`: the tunnel endpoint; 0 takes each packet's aggregate annotation. Mandatory.
//! # Ports
//! 1/1, agnostic. Packets too long for a header are dropped. UDP and IP headers follow, by `UDPIPEncap`.
//! # Handlers
//! * `teid` (read, write): TEID.
//! # Differences from Click
//! See `NumberPacket`.
//! # Example
//! `FromDevice(0) -> Strip(14) -> GTPEncap(22) -> UDPIPEncap(10.0.0.1, 2152, 10.0.0.2, 2152) -> arp;`
use click_core::anno;

use crate::gtp;
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "GTPEncap",
    args: &[mandatory("TEID")],
    handlers: &[read_write(
        "teid",
        |me: &mut GTPEncap, _| text(me.teid),
        set!(|me, teid, _| me.teid = teid),
    )],
    build: |a| {
        Some(Box::new(GTPEncap {
            teid: a.need("TEID")?,
        }))
    },
    live: true,
    ..Class::DEFAULT
};

struct GTPEncap {
    teid: u32,
}

impl InPlace for GTPEncap {
    const USE: Use = Use::Writes;

    fn output_port(&mut self, _ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        let teid = match self.teid {
            0 => packet.anno().u32(anno::AGGREGATE),
            teid => teid,
        };
        let header = gtp::header(teid, packet.len());
        kept_if(header.is_some_and(|header| packet.prepend(&header)))
    }
}

impl Element for GTPEncap {
    in_place!(plain);
}

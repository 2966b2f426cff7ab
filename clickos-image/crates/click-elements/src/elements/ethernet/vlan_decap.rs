// SPDX-License-Identifier: Apache-2.0
//! Removes VLAN tags from Ethernet frames.
//!
//! # Synopsis
//! `VLANDecap([ANNO, ETHERTYPE])`: frames without a tag of ETHERTYPE (default 0x8100) stay as they are. Unless ANNO is false
//! (default true) the VLAN annotation is set, to 0 where there was no tag.
//! # Ports
//! 1/1, agnostic.
//! # Handlers
//! None of its own.
//! # Differences from Click
//! Checks that there is a whole header.
//! # Example
//! `FromDevice(0) -> VLANDecap -> Strip(14) -> CheckIPHeader -> ...`
use crate::prelude::*;
use crate::vlan;

pub static ELEMENT: Class = Class {
    name: "VLANDecap",
    args: &[optional("ANNO"), keyword("ETHERTYPE")],
    build: |a| {
        let (annotate, ethertype) = (a.or("ANNO", true), a.or("ETHERTYPE", vlan::ETHERTYPE));
        Some(Box::new(VLANDecap {
            annotate: annotate?,
            ethertype: ethertype?,
        }))
    },
    ..Class::DEFAULT
};

struct VLANDecap {
    annotate: bool,
    ethertype: u16,
}

impl InPlace for VLANDecap {
    fn output_port(&mut self, _ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        let kind = self.ethertype.to_be_bytes();
        let mut tci = 0;
        let bytes = packet.data_mut();
        if bytes.len() >= vlan::HEADER && bytes[12..14] == kind {
            tci = u16::from_be_bytes([bytes[14], bytes[15]]);
            bytes.copy_within(0..12, 4);
            packet.pull(4);
        }
        vlan::mark_frame(packet, vlan::UNTAGGED);
        if self.annotate {
            vlan::annotate(packet, tci);
        }
        0
    }
}

impl Element for VLANDecap {
    in_place!(plain);
}

// SPDX-License-Identifier: Apache-2.0
//! Takes VXLAN headers from Ethernet frames (RFC 7348).
//!
//! # Synopsis
//! `VXLANDecap(VNI)`: VNI is the number of the virtual network, at most 16777215; mandatory.
//! # Ports
//! 1/1-2, agnostic. Packets begin with the VXLAN header. Output 1 (push) gets those of other networks, without a valid
//! network number, or with no whole Ethernet header behind; they are dropped if it is not connected.
//! # Handlers
//! * `vni` (read, write): VNI. `drops` (read): packets that did not leave by output 0.
//! # Example
//! `udp -> StripIPHeader -> Strip(8) -> VXLANDecap(100) -> Queue -> ToDevice(0);`
use crate::prelude::*;
use crate::vxlan::{HEADER, Vni};

pub static ELEMENT: Class = Class {
    name: "VXLANDecap",
    ports: "1/1-2",
    processing: "a/ah",
    args: &[mandatory("VNI")],
    handlers: &[
        read_write(
            "vni",
            |me: &mut VXLANDecap, _| text(me.vni.0),
            set!(|me, vni, _| me.vni = vni),
        ),
        read("drops", |me, _| text(me.drops)),
    ],
    build: |a| {
        Some(Box::new(VXLANDecap {
            vni: a.need("VNI")?,
            drops: 0,
        }))
    },
    ..Class::DEFAULT
};

/// Bytes of an Ethernet header.
const ETHERNET: usize = 14;

struct VXLANDecap {
    vni: Vni,
    drops: u64,
}

impl InPlace for VXLANDecap {
    fn output_port(&mut self, _ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        let long = packet.len() >= HEADER + ETHERNET;
        if !long || Vni::of(packet.data()) != Some(self.vni) {
            self.drops += 1;
            return 1;
        }
        packet.pull(HEADER);
        0
    }
}

impl Element for VXLANDecap {
    in_place!(plain);
}

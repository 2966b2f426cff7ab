// SPDX-License-Identifier: Apache-2.0
//! Puts VXLAN headers in front of Ethernet frames (RFC 7348).
//!
//! # Synopsis
//! `VXLANEncap(VNI)`: VNI is the number of the virtual network, at most 16777215; mandatory.
//! # Ports
//! 1/1, agnostic. Packets too long for a header are dropped. UDP and IP headers follow, by `UDPIPEncap`.
//! # Handlers
//! * `vni` (read, write): VNI.
//! # Example
//! `FromDevice(0) -> VXLANEncap(100) -> UDPIPEncap(10.0.0.1, 4789, 10.0.0.2, 4789) -> arp;`
use crate::prelude::*;
use crate::vxlan::{HEADER, Vni};

pub static ELEMENT: Class = Class {
    name: "VXLANEncap",
    args: &[mandatory("VNI")],
    handlers: &[read_write(
        "vni",
        |me: &mut VXLANEncap, _| text(me.vni.0),
        set!(|me, vni, _| me.vni = vni),
    )],
    build: |a| {
        Some(Box::new(VXLANEncap {
            vni: a.need("VNI")?,
        }))
    },
    ..Class::DEFAULT
};

struct VXLANEncap {
    vni: Vni,
}

impl InPlace for VXLANEncap {
    const USE: Use = Use::Writes;

    fn output_port(&mut self, _ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        if !packet.push(HEADER) {
            return DROPPED;
        }
        packet.data_mut()[..HEADER].copy_from_slice(&self.vni.header());
        0
    }
}

impl Element for VXLANEncap {
    in_place!(plain);
}

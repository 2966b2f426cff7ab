// SPDX-License-Identifier: Apache-2.0
//! Sets the VLAN annotation of packets.
//!
//! # Synopsis
//! `SetVLANAnno([VLAN_TCI, VLAN_PCP, VLAN_ID])`: for a later `EtherVLANEncap` or `VLANEncap` with `ANNO`.
//! VLAN_TCI (all 16 bits) is `ANNO`, the VLAN annotation, or a number; else it is made of VLAN_ID (default 0) and
//! VLAN_PCP, the priority (default 0, at most 7).
//! # Ports
//! 1/1, agnostic.
//! # Handlers
//! * `vlan_tci`, `vlan_id`, `vlan_pcp` (read, write): the arguments.
//! # Differences from Click
//! `vlan_id` and `vlan_pcp` show and set their part of the tag also where VLAN_TCI was given.
//! # Example
//! `c[1] -> SetVLANAnno(VLAN_ID 7) -> vlans :: VLANEncap(ANNO) -> ToDevice(0);`
use crate::prelude::*;
use crate::vlan::{self, Tag, vlan_id, vlan_pcp, vlan_tci};

pub static ELEMENT: Class = Class {
    name: "SetVLANAnno",
    aliases: &["SetVlanAnno"],
    args: &[
        optional("VLAN_TCI"),
        optional("VLAN_PCP"),
        keyword("VLAN_ID"),
    ],
    handlers: &[vlan_tci::<SetVLANAnno>(), vlan_id(), vlan_pcp()],
    build: |a| Some(Box::new(SetVLANAnno { tag: Tag::of(a)? })),
    live: true,
    ..Class::DEFAULT
};

struct SetVLANAnno {
    tag: Tag,
}

impl InPlace for SetVLANAnno {
    const USE: Use = Use::Writes;

    fn output_port(&mut self, _ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        let tci = self.tag.of_packet(packet);
        vlan::annotate(packet, tci);
        0
    }
}

part!(SetVLANAnno, tag: Tag);

impl Element for SetVLANAnno {
    in_place!(plain);
}

// SPDX-License-Identifier: Apache-2.0
//! Puts VLAN tags into Ethernet frames.
//!
//! # Synopsis
//! `VLANEncap([VLAN_TCI, VLAN_PCP, VLAN_ID, NATIVE_VLAN, ETHERTYPE])`: the tag goes after the frame's addresses.
//! VLAN_TCI (all 16 bits) is `ANNO`, the VLAN annotation, or a number; else it is made of VLAN_ID (default 0) and
//! VLAN_PCP, the priority (default 0, at most 7). Frames of NATIVE_VLAN (default 0, -1: none) get no tag. ETHERTYPE is the
//! tag's (default 0x8100).
//! # Ports
//! 1/1, agnostic. Frames without two addresses are dropped.
//! # Handlers
//! * `vlan_tci`, `vlan_id`, `vlan_pcp`, `native_vlan`, `ethertype` (read, write): the arguments.
//! # Differences from Click
//! `vlan_id` and `vlan_pcp` show and set their part of the tag also where VLAN_TCI was given.
//! Checks that there is a whole header.
//! # Example
//! `FromDevice(0) -> VLANEncap(VLAN_ID 7) -> ToDevice(1);`
use crate::prelude::*;
use crate::vlan::{self, Native, Tag, vlan_id, vlan_pcp, vlan_tci};

pub static ELEMENT: Class = Class {
    name: "VLANEncap",
    args: &[
        optional("VLAN_TCI"),
        optional("VLAN_PCP"),
        keyword("VLAN_ID"),
        keyword("NATIVE_VLAN"),
        keyword("ETHERTYPE"),
    ],
    handlers: &[
        vlan_tci::<VLANEncap>(),
        vlan_id(),
        vlan_pcp(),
        read_write(
            "native_vlan",
            |me, _| Ok(vlan::native_text(me.native)),
            set!(|me, native: Native, _| me.native = native.0),
        ),
        read_write(
            "ethertype",
            |me, _| text(me.ethertype),
            set!(|me, kind, _| me.ethertype = kind),
        ),
    ],
    build: |a| {
        let (tag, native) = (Tag::of(a), a.or("NATIVE_VLAN", Native(Some(0))));
        let ethertype = a.or("ETHERTYPE", vlan::ETHERTYPE);
        Some(Box::new(VLANEncap {
            tag: tag?,
            native: native?.0,
            ethertype: ethertype?,
        }))
    },
    ..Class::DEFAULT
};

/// Bytes of the addresses of a frame.
const ADDRESSES: usize = 12;

struct VLANEncap {
    tag: Tag,
    native: Option<u16>,
    ethertype: u16,
}

impl InPlace for VLANEncap {
    const USE: Use = Use::Writes;

    fn output_port(&mut self, _ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        let tci = self.tag.of_packet(packet);
        let native = vlan::is_native(tci, self.native);
        if !native {
            if packet.len() < ADDRESSES || !packet.push(4) {
                return DROPPED;
            }
            let bytes = packet.data_mut();
            bytes.copy_within(4..4 + ADDRESSES, 0);
            bytes[ADDRESSES..14].copy_from_slice(&self.ethertype.to_be_bytes());
            bytes[14..16].copy_from_slice(&tci.to_be_bytes());
        }
        vlan::mark_frame(packet, if native { vlan::UNTAGGED } else { vlan::HEADER });
        0
    }
}

part!(VLANEncap, tag: Tag);

impl Element for VLANEncap {
    in_place!(plain);
}

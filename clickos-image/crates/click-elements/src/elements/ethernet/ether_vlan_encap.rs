// SPDX-License-Identifier: Apache-2.0
//! Puts Ethernet headers with a VLAN tag in front of packets.
//!
//! # Synopsis
//! `EtherVLANEncap(ETHERTYPE, SRC, DST [, VLAN_TCI, VLAN_PCP, VLAN_ID, NATIVE_VLAN])`: ETHERTYPE is that of the content.
//! VLAN_TCI (all 16 bits) is `ANNO`, the VLAN annotation, or a number; else it is made of VLAN_ID (default 0) and
//! VLAN_PCP, the priority (default 0, at most 7). Packets of NATIVE_VLAN (default 0, -1: none) get a header without a tag.
//! # Ports
//! 1/1, agnostic.
//! # Handlers
//! * `src`, `dst`, `ethertype`, `vlan_tci`, `vlan_id`, `vlan_pcp`, `native_vlan` (read, write): the arguments.
//! # Differences from Click
//! `vlan_id` and `vlan_pcp` show and set their part of the tag also where VLAN_TCI was given.
//! # Example
//! `... -> EtherVLANEncap(0x0800, 02:00:00:00:00:01, 02:00:00:00:00:02, VLAN_ID 7) -> ToDevice(0);`
use click_wire::ether;

use crate::prelude::*;
use crate::vlan::{self, Native, Tag, vlan_id, vlan_pcp, vlan_tci};

pub static ELEMENT: Class = Class {
    name: "EtherVLANEncap",
    aliases: &["EtherVlanEncap"],
    args: &[
        mandatory("ETHERTYPE"),
        mandatory("SRC"),
        mandatory("DST"),
        optional("VLAN_TCI"),
        optional("VLAN_PCP"),
        keyword("VLAN_ID"),
        keyword("NATIVE_VLAN"),
    ],
    handlers: &[
        read_write(
            "src",
            |me: &mut EtherVLANEncap, _| text(EtherAddr(me.header.source)),
            set!(|me, mac: EtherAddr, _| me.header.source = mac.0),
        ),
        read_write(
            "dst",
            |me, _| text(EtherAddr(me.header.destination)),
            set!(|me, mac: EtherAddr, _| me.header.destination = mac.0),
        ),
        read_write(
            "ethertype",
            |me, _| text(me.header.ethertype),
            set!(|me, kind, _| me.header.ethertype = kind),
        ),
        vlan_tci(),
        vlan_id(),
        vlan_pcp(),
        read_write(
            "native_vlan",
            |me, _| Ok(vlan::native_text(me.native)),
            set!(|me, native: Native, _| me.native = native.0),
        ),
    ],
    build: |a| {
        let (ethertype, source) = (a.need("ETHERTYPE"), a.need::<EtherAddr>("SRC"));
        let (destination, tag) = (a.need::<EtherAddr>("DST"), Tag::of(a));
        let native = a.or("NATIVE_VLAN", Native(Some(0)));
        Some(Box::new(EtherVLANEncap {
            header: ether::Repr {
                destination: destination?.0,
                source: source?.0,
                ethertype: ethertype?,
            },
            tag: tag?,
            native: native?.0,
        }))
    },
    live: true,
    ..Class::DEFAULT
};

struct EtherVLANEncap {
    header: ether::Repr,
    tag: Tag,
    native: Option<u16>,
}

impl InPlace for EtherVLANEncap {
    const USE: Use = Use::Writes;

    fn output_port(&mut self, _ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        let tci = self.tag.of_packet(packet);
        let native = vlan::is_native(tci, self.native);
        let length = if native { ether::HEADER } else { vlan::HEADER };
        if !packet.push(length) {
            return DROPPED;
        }
        let bytes = packet.data_mut();
        self.header.emit(bytes);
        if !native {
            bytes[12..14].copy_from_slice(&vlan::ETHERTYPE.to_be_bytes());
            bytes[14..16].copy_from_slice(&tci.to_be_bytes());
            bytes[16..18].copy_from_slice(&self.header.ethertype.to_be_bytes());
        }
        vlan::mark_frame(packet, length);
        0
    }
}

part!(EtherVLANEncap, tag: Tag);

impl Element for EtherVLANEncap {
    in_place!(plain);
}

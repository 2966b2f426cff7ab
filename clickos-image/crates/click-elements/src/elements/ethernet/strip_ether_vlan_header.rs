// SPDX-License-Identifier: Apache-2.0
//! Removes Ethernet headers with or without a VLAN tag.
//!
//! # Synopsis
//! `StripEtherVLANHeader([NATIVE_VLAN])`: the VLAN annotation gets the tag, or NATIVE_VLAN (default 0) if there is none.
//! # Ports
//! 1/1-2, agnostic. If NATIVE_VLAN is -1, output 1 (push) gets frames without a tag, unchanged; they are dropped if it
//! is not connected. So are frames too short for their header.
//! # Handlers
//! None of its own.
//! # Differences from Click
//! Checks that there is a whole header.
//! # Example
//! `FromDevice(0) -> StripEtherVLANHeader -> CheckIPHeader -> ...`
use click_wire::ether;

use crate::prelude::*;
use crate::vlan::{self, Native};

pub static ELEMENT: Class = Class {
    name: "StripEtherVLANHeader",
    aliases: &["StripEtherVlanHeader"],
    ports: "1/1-2",
    processing: "a/ah",
    args: &[optional("NATIVE_VLAN")],
    build: |a| {
        Some(Box::new(StripEtherVLANHeader {
            native: a.or("NATIVE_VLAN", Native(Some(0)))?.0,
        }))
    },
    live: true,
    ..Class::DEFAULT
};

struct StripEtherVLANHeader {
    native: Option<u16>,
}

impl InPlace for StripEtherVLANHeader {
    const USE: Use = Use::Writes;

    fn output_port(&mut self, _ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        let bytes = packet.data();
        let tagged = bytes.get(12..14) == Some(&vlan::ETHERTYPE.to_be_bytes());
        let (tci, length) = match (tagged, bytes.get(14..16), self.native) {
            (true, Some(tci), _) => (u16::from_be_bytes([tci[0], tci[1]]), vlan::HEADER),
            (false, _, Some(native)) => (native, ether::HEADER),
            _ => return 1,
        };
        if packet.len() < length {
            return 1;
        }
        vlan::annotate(packet, tci);
        packet.pull(length);
        0
    }
}

impl Element for StripEtherVLANHeader {
    in_place!(plain);
}

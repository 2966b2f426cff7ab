// SPDX-License-Identifier: Apache-2.0
//! Sets the packet type annotation.
//!
//! # Synopsis
//! `SetPacketType(TYPE)`: `HOST`, `BROADCAST`, `MULTICAST`, `OTHERHOST`, `OUTGOING` or `LOOPBACK`, in
//! capital or small letters; mandatory.
//! # Ports
//! 1/1, agnostic.
//! # Handlers
//! None of its own.
//! # Example
//! `FromDump(in.pcap) -> SetPacketType(BROADCAST) -> DropBroadcasts -> Discard;`
use click_core::ArgContext;
use click_core::anno::PacketType;

use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "SetPacketType",
    args: &[mandatory("TYPE")],
    build: |a| {
        let Type(to) = a.need("TYPE")?;
        Some(Box::new(SetPacketType { to }))
    },
    live: true,
    ..Class::DEFAULT
};

struct Type(PacketType);

impl FromArg for Type {
    fn from_arg(text: &str, _: ArgContext<'_>) -> Result<Self, String> {
        Ok(Self(match text.to_ascii_uppercase().as_str() {
            "HOST" => PacketType::Host,
            "BROADCAST" => PacketType::Broadcast,
            "MULTICAST" => PacketType::Multicast,
            "OTHERHOST" => PacketType::OtherHost,
            "OUTGOING" => PacketType::Outgoing,
            "LOOPBACK" => PacketType::Loopback,
            _ => {
                return Err(format!(
                    "expected a packet type such as HOST, got \"{}\"",
                    text.shown()
                ));
            }
        }))
    }
}

struct SetPacketType {
    to: PacketType,
}

impl InPlace for SetPacketType {
    fn output_port(&mut self, _ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        packet.anno_mut().set_packet_type(self.to);
        0
    }
}

impl Element for SetPacketType {
    in_place!(plain);
}

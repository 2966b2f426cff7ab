// SPDX-License-Identifier: Apache-2.0
//! Copies an IPv6 address of packets to the destination annotation.
//!
//! # Synopsis
//! `GetIP6Address(OFFSET)`: it begins at byte OFFSET; the destination in a packet's header is at 24.
//! # Ports
//! 1/1, agnostic. The annotation of packets too short for an address stays as it is.
//! # Handlers
//! None of its own.
//! # Example
//! `... -> CheckIP6Header -> GetIP6Address(24) -> LookupIP6Route(2001:db8::/32 0, ::/0 2001:db8::1 1);`
use crate::ip6::Address;
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "GetIP6Address",
    args: &[mandatory("OFFSET")],
    build: |a| {
        Some(Box::new(GetIP6Address {
            offset: a.need("OFFSET")?,
        }))
    },
    ..Class::DEFAULT
};

struct GetIP6Address {
    offset: usize,
}

impl InPlace for GetIP6Address {
    const USE: Use = Use::Writes;

    fn output_port(&mut self, _ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        let bytes = packet.data().get(self.offset..);
        if let Some(address) = bytes.and_then(Address::at) {
            address.put(packet);
        }
        0
    }
}

impl Element for GetIP6Address {
    in_place!(plain);
}

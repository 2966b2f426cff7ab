// SPDX-License-Identifier: Apache-2.0
//! Sets the destination annotation of packets to an IPv6 address.
//!
//! # Synopsis
//! `SetIP6Address(IPADDR)`.
//! # Ports
//! 1/1, agnostic.
//! # Handlers
//! None of its own.
//! # Example
//! `... -> SetIP6Address(2001:db8::1) -> IP6NDSolicitor(2001:db8::2, vif0) -> ...`
use crate::ip6::Address;
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "SetIP6Address",
    args: &[mandatory("IPADDR")],
    build: |a| {
        Some(Box::new(SetIP6Address {
            address: a.need("IPADDR")?,
        }))
    },
    ..Class::DEFAULT
};

struct SetIP6Address {
    address: Address,
}

impl InPlace for SetIP6Address {
    const USE: Use = Use::Writes;

    fn output_port(&mut self, _ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        self.address.put(packet);
        0
    }
}

impl Element for SetIP6Address {
    in_place!(plain);
}

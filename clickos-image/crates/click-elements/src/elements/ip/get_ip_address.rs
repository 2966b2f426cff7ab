// SPDX-License-Identifier: Apache-2.0
//! Sets the destination annotation of packets from their data.
//!
//! # Synopsis
//! `GetIPAddress(OFFSET)`: the address is OFFSET bytes behind the start; usually 16, the destination of an IP header.
//! # Ports
//! 1/1, agnostic. A packet too short for an address there keeps its annotation.
//! # Handlers
//! None of its own.
//! # Example
//! `Strip(14) -> GetIPAddress(16) -> arp;`
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "GetIPAddress",
    args: &[mandatory("OFFSET")],
    build: |a| {
        Some(Box::new(GetIPAddress {
            offset: a.need("OFFSET")?,
        }))
    },
    ..Class::DEFAULT
};

struct GetIPAddress {
    offset: usize,
}

impl Element for GetIPAddress {
    fn process(&mut self, _ctx: &mut Context<'_>, mut packet: Packet) -> Out {
        let address = packet
            .data()
            .get(self.offset..)
            .and_then(|b| b.first_chunk::<4>())
            .copied();
        if let Some(address) = address {
            packet.anno_mut().set_dst_ip(address);
        }
        Out::Port(0, packet)
    }
}

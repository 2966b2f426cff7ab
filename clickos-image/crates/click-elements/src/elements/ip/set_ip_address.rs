// SPDX-License-Identifier: Apache-2.0
//! Sets the destination annotation of packets, such as to a gateway.
//!
//! # Synopsis
//! `SetIPAddress(IP)`: mandatory. The packet itself is not changed.
//! # Ports
//! 1/1, agnostic.
//! # Handlers
//! * `addr` (read, write): IP.
//! # Example
//! `c :: IPClassifier(dst net 10.0.0.0/24, -); c[1] -> SetIPAddress(10.0.0.254) -> arp;`
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "SetIPAddress",
    args: &[mandatory("IP")],
    handlers: &[read_write(
        "addr",
        |me: &mut SetIPAddress, _| text(me.address),
        set!(|me, address, _| me.address = address),
    )],
    build: |a| {
        Some(Box::new(SetIPAddress {
            address: a.need("IP")?,
        }))
    },
    live: true,
    ..Class::DEFAULT
};

struct SetIPAddress {
    address: Ipv4Addr,
}

impl InPlace for SetIPAddress {
    fn output_port(&mut self, _ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        packet.anno_mut().set_dst_ip(self.address.octets());
        0
    }
}

impl Element for SetIPAddress {
    in_place!(plain);
}

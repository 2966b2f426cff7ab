// SPDX-License-Identifier: Apache-2.0
//! Sets an annotation of packets to an Ethernet address.
//!
//! # Synopsis
//! `SetEtherAddress(ADDR, ANNO)`: ANNO is the first of six bytes of annotations.
//! # Ports
//! 1/1, agnostic.
//! # Handlers
//! * `addr` (read, write): ADDR.
//! # Example
//! `... -> SetEtherAddress(02:00:00:00:00:01, 20) -> StoreEtherAddress(dst, ANNO 20) -> ToDevice(0);`
use crate::ethernet_place::EtherAnno;
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "SetEtherAddress",
    args: &[mandatory("ADDR"), mandatory("ANNO")],
    handlers: &[read_write(
        "addr",
        |me: &mut SetEtherAddress, _| text(me.address),
        set!(|me, mac, _| me.address = mac),
    )],
    build: |a| {
        let (address, annotation) = (a.need("ADDR"), a.need("ANNO"));
        Some(Box::new(SetEtherAddress {
            address: address?,
            annotation: annotation?,
        }))
    },
    live: true,
    ..Class::DEFAULT
};

struct SetEtherAddress {
    address: EtherAddr,
    annotation: EtherAnno,
}

impl InPlace for SetEtherAddress {
    const USE: Use = Use::Writes;

    fn output_port(&mut self, _ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        self.annotation.set(packet, self.address.0);
        0
    }
}

impl Element for SetEtherAddress {
    in_place!(plain);
}

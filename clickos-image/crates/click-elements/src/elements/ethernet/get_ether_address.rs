// SPDX-License-Identifier: Apache-2.0
//! Copies an Ethernet address of packets into an annotation.
//!
//! # Synopsis
//! `GetEtherAddress(ANNO, OFFSET)`: ANNO is the first of six bytes of annotations, OFFSET the place in the packet; `src` and `dst` are
//! those of an Ethernet header.
//! # Ports
//! 1/1-2, agnostic. Output 1 (push) gets packets that are too short; they are dropped if it is not connected.
//! # Handlers
//! None of its own.
//! # Differences from Click
//! Where packets are pulled, output 1 is push.
//! # Example
//! `FromDevice(0) -> GetEtherAddress(20, src) -> EtherMirror -> StoreEtherAddress(dst, ANNO 20) -> ToDevice(0);`
use crate::ethernet_place::{EtherAnno, EtherPlace};
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "GetEtherAddress",
    ports: "1/1-2",
    processing: "a/ah",
    args: &[mandatory("ANNO"), mandatory("OFFSET")],
    build: |a| {
        let (annotation, place) = (a.need("ANNO"), a.need("OFFSET"));
        Some(Box::new(GetEtherAddress {
            annotation: annotation?,
            place: place?,
        }))
    },
    live: true,
    ..Class::DEFAULT
};

struct GetEtherAddress {
    annotation: EtherAnno,
    place: EtherPlace,
}

impl InPlace for GetEtherAddress {
    const USE: Use = Use::Writes;

    fn output_port(&mut self, _ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        let found = packet.data().get(self.place.0..);
        let Some(address) = found.and_then(|bytes| bytes.first_chunk()).copied() else {
            return 1;
        };
        self.annotation.set(packet, address);
        0
    }
}

impl Element for GetEtherAddress {
    in_place!(plain);
}

// SPDX-License-Identifier: Apache-2.0
//! Writes an Ethernet address into packets.
//!
//! # Synopsis
//! `StoreEtherAddress([ADDR,] OFFSET [, ANNO])`: writes ADDR, or the six bytes from annotation ANNO on, OFFSET bytes behind the
//! packet's start; `src` and `dst` are those of an Ethernet header. Exactly one of ADDR and ANNO must be given.
//! # Ports
//! 1/1-2, agnostic. Output 1 (push) gets packets that are too short; they are dropped if it is not connected.
//! # Handlers
//! * `addr` (read, write): ADDR.
//! # Example
//! `... -> StoreEtherAddress(02:00:00:00:00:01, src) -> ToDevice(0);`
use crate::ethernet_place::{EtherAnno, EtherPlace};
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "StoreEtherAddress",
    ports: "1/1-2",
    processing: "a/ah",
    args: &[optional("ADDR"), optional("OFFSET"), keyword("ANNO")],
    handlers: &[read_write(
        "addr",
        |me: &mut StoreEtherAddress, _| text(me.address),
        set!(|me, mac, _| me.address = mac),
    )],
    build,
    ..Class::DEFAULT
};

fn build(a: &mut Args<'_>) -> Built {
    let (first, second) = (a.opt::<String>("ADDR")?, a.opt::<String>("OFFSET")?);
    let annotation = a.opt::<EtherAnno>("ANNO")?;
    let (address, offset) = match (first, second, annotation) {
        (Some(address), Some(offset), None) => (a.parse("ADDR", &address)?, offset),
        (Some(offset), None, Some(_)) | (None, Some(offset), Some(_)) => {
            (EtherAddr([0; 6]), offset)
        }
        (None, None, _) => {
            a.error("OFFSET", "required argument missing");
            return None;
        }
        (.., annotation) => {
            let got = if annotation.is_some() { "both" } else { "none" };
            a.error("ADDR", format!("expected one of ADDR and ANNO, got {got}"));
            return None;
        }
    };
    Some(Box::new(StoreEtherAddress {
        address,
        place: a.parse("OFFSET", &offset)?,
        annotation,
    }))
}

struct StoreEtherAddress {
    address: EtherAddr,
    place: EtherPlace,
    annotation: Option<EtherAnno>,
}

impl InPlace for StoreEtherAddress {
    const USE: Use = Use::Writes;

    fn output_port(&mut self, _ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        let annotated = self.annotation.map(|annotation| annotation.get(packet));
        let address = annotated.unwrap_or(self.address.0);
        let place = packet.data_mut().get_mut(self.place.0..);
        let Some(place) = place.and_then(|b| b.first_chunk_mut::<6>()) else {
            return 1;
        };
        *place = address;
        0
    }
}

impl Element for StoreEtherAddress {
    in_place!(plain);
}

// SPDX-License-Identifier: Apache-2.0
//! Writes an IP address into packets.
//!
//! # Synopsis
//! `StoreIPAddress([ADDR,] OFFSET)`: writes ADDR, or the destination annotation if only one argument is given, OFFSET bytes
//! after the packet's start. If OFFSET is `src` or `dst`, it is the sender or the receiver of the marked IP header; the
//! checksums of IP, TCP and UDP follow.
//! # Ports
//! 1/1-2, agnostic. Output 1 (push) gets packets that are too short, that have no marked header (`src`, `dst`), or no
//! destination annotation (a number alone); they are dropped if it is not connected.
//! # Handlers
//! None of its own.
//! # Differences from Click
//! A number that is too large is never taken relative to the IP header.
//! # Example
//! `... -> CheckIPHeader -> StoreIPAddress(10.0.0.1, src) -> ...`
use crate::ip_packet::{Side, set_address};
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "StoreIPAddress",
    ports: "1/1-2",
    processing: "a/ah",
    args: &[optional("ADDR"), optional("OFFSET")],
    build: |a| {
        let (first, second) = (a.opt::<String>("ADDR")?, a.opt::<String>("OFFSET")?);
        let (address, offset) = match (first, second) {
            (Some(address), Some(offset)) => (Some(a.parse("ADDR", &address)?), offset),
            (Some(offset), None) | (None, Some(offset)) => (None, offset),
            (None, None) => {
                a.error("OFFSET", "required argument missing");
                return None;
            }
        };
        let place = match offset.to_ascii_lowercase().as_str() {
            "src" => Place::Header(Side::Source),
            "dst" => Place::Header(Side::Destination),
            _ => Place::At(a.parse("OFFSET", &offset)?),
        };
        Some(Box::new(StoreIPAddress { address, place }))
    },
    ..Class::DEFAULT
};

enum Place {
    At(usize),
    Header(Side),
}

struct StoreIPAddress {
    address: Option<Ipv4Addr>,
    place: Place,
}

impl StoreIPAddress {
    fn store(&self, packet: &mut Packet) -> bool {
        let annotation = Ipv4Addr::from(packet.anno().dst_ip());
        let address = self.address.unwrap_or(annotation);
        let offset = match self.place {
            Place::Header(side) => return set_address(packet, side, address),
            Place::At(offset) => offset,
        };
        let known = self.address.is_some() || !annotation.is_unspecified();
        let place = packet.data_mut().get_mut(offset..);
        match place.and_then(|b| b.first_chunk_mut::<4>()) {
            Some(place) if known => {
                *place = address.octets();
                true
            }
            _ => false,
        }
    }
}

impl InPlace for StoreIPAddress {
    const USE: Use = Use::Writes;

    fn output_port(&mut self, _ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        usize::from(!self.store(packet))
    }
}

impl Element for StoreIPAddress {
    in_place!(plain);
}

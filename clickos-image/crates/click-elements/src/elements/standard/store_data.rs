// SPDX-License-Identifier: Apache-2.0
//! Overwrites bytes of packets.
//!
//! # Synopsis
//! `StoreData(OFFSET, DATA)`: DATA, such as `\<0800>`, is written OFFSET bytes into the packet; both
//! mandatory. The packet's length does not change: what lies behind its end is not written.
//! # Ports
//! 1/1, agnostic.
//! # Handlers
//! None of its own.
//! # Example
//! `FromDevice(0) -> StoreData(0, \<020000000001>) -> ToDevice(1);`
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "StoreData",
    args: &[mandatory("OFFSET"), mandatory("DATA")],
    build: |a| {
        let (offset, data) = (a.need("OFFSET"), a.need::<Bytes>("DATA"));
        Some(Box::new(StoreData {
            offset: offset?,
            data: data?.0,
        }))
    },
    ..Class::DEFAULT
};

struct StoreData {
    offset: usize,
    data: Vec<u8>,
}

impl InPlace for StoreData {
    const USE: Use = Use::Writes;

    fn way(&mut self, _ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        let place = packet.data_mut().get_mut(self.offset..).unwrap_or_default();
        for (byte, new) in place.iter_mut().zip(&self.data) {
            *byte = *new;
        }
        0
    }
}

impl Element for StoreData {
    in_place!(plain);
}

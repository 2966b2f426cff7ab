// SPDX-License-Identifier: Apache-2.0
//! Appends a checksum to packets.
//!
//! # Synopsis
//! `SetCRC32`: CRC-32 over the whole packet, four bytes.
//! # Ports
//! 1/1, agnostic.
//! # Handlers
//! None of its own.
//! # Example
//! `FromDevice(0) -> SetCRC32 -> ToDevice(1);`
use crate::prelude::*;
use crate::standard::crc32::{SIZE, checksum};

pub static ELEMENT: Class = Class {
    name: "SetCRC32",
    build: |_| Some(Box::new(SetCRC32)),
    ..Class::DEFAULT
};

struct SetCRC32;

impl InPlace for SetCRC32 {
    const USE: Use = Use::Writes;

    fn output_port(&mut self, _ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        let (length, crc) = (packet.len(), checksum(packet.data()));
        if !packet.put(SIZE) {
            return DROPPED;
        }
        packet.data_mut()[length..].copy_from_slice(&crc);
        0
    }
}

impl Element for SetCRC32 {
    in_place!(plain);
}

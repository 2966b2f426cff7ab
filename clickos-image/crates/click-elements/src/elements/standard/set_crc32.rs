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

impl Element for SetCRC32 {
    fn process(&mut self, _ctx: &mut Context<'_>, mut packet: Packet) -> Out {
        let (length, crc) = (packet.len(), checksum(packet.data()));
        if !packet.put(SIZE) {
            return Out::Drop;
        }
        packet.data_mut()[length..].copy_from_slice(&crc);
        Out::Port(0, packet)
    }
}

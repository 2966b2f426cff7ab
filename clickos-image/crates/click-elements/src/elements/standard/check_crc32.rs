// SPDX-License-Identifier: Apache-2.0
//! Checks and removes the checksum `SetCRC32` appended.
//!
//! # Synopsis
//! `CheckCRC32`: packets with a wrong checksum, or too short for one, are dropped.
//! # Ports
//! 1/1, agnostic.
//! # Handlers
//! * `drops` (read): packets dropped.
//! # Example
//! `FromDevice(0) -> CheckCRC32 -> ToDevice(1);`
use crate::prelude::*;
use crate::standard::crc32::{SIZE, checksum};

pub static ELEMENT: Class = Class {
    name: "CheckCRC32",
    handlers: &[read("drops", |me: &mut CheckCRC32, _| text(me.drops))],
    build: |_| Some(Box::new(CheckCRC32 { drops: 0 })),
    ..Class::DEFAULT
};

struct CheckCRC32 {
    drops: u64,
}

fn is_right(data: &[u8]) -> bool {
    let split = data.split_last_chunk::<SIZE>();
    split.is_some_and(|(data, crc)| checksum(data) == *crc)
}

impl InPlace for CheckCRC32 {
    const USE: Use = Use::Reads;

    fn output_port(&mut self, _ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        if !is_right(packet.data()) {
            self.drops += 1;
            return DROPPED;
        }
        packet.take(SIZE);
        0
    }
}

impl Element for CheckCRC32 {
    in_place!(plain);
}

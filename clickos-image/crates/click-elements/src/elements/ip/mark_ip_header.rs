// SPDX-License-Identifier: Apache-2.0
//! Marks packets as IP packets without checking them.
//!
//! # Synopsis
//! `MarkIPHeader([OFFSET])`: the header begins OFFSET bytes (default 0) after the start.
//! # Ports
//! 1/1, agnostic. A packet too short for a header at OFFSET passes without the mark.
//! # Handlers
//! None of its own.
//! # Example
//! `FromDevice(0) -> MarkIPHeader(14) -> IPClassifier(tcp, -);`
use click_wire::ipv4;

use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "MarkIPHeader",
    args: &[optional("OFFSET")],
    build: |a| {
        Some(Box::new(MarkIPHeader {
            offset: a.or("OFFSET", 0)?,
        }))
    },
    ..Class::DEFAULT
};

struct MarkIPHeader {
    offset: usize,
}

impl InPlace for MarkIPHeader {
    fn output_port(&mut self, _ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        let header_len = packet
            .data()
            .get(self.offset..)
            .filter(|b| b.len() >= ipv4::HEADER);
        match header_len.map(|b| usize::from(b[0] & 15) * 4) {
            Some(len) => packet.set_network(self.offset, len),
            None => packet.clear_network(),
        }
        0
    }
}

impl Element for MarkIPHeader {
    in_place!(plain);
}

// SPDX-License-Identifier: Apache-2.0
//! Marks where the link header of packets is.
//!
//! # Synopsis
//! `MarkMACHeader([OFFSET, LENGTH])`: it begins OFFSET bytes into the packet (default
//! 0). LENGTH (default 0: unknown) is the offset in bytes of the network header, which it also
//! marks.
//! # Ports
//! 1/1, agnostic.
//! # Handlers
//! None of its own.
//! # Example
//! `InfiniteSource(DATA \<...>) -> MarkMACHeader(0, 14) -> StripToNetworkHeader -> CheckIPHeader -> ...`
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "MarkMACHeader",
    args: &[optional("OFFSET"), optional("LENGTH")],
    build: |a| {
        let (offset, length) = (a.or("OFFSET", 0u16), a.or("LENGTH", 0u16));
        Some(Box::new(MarkMACHeader {
            offset: offset?,
            length: length?,
        }))
    },
    live: true,
    ..Class::DEFAULT
};

struct MarkMACHeader {
    offset: u16,
    length: u16,
}

impl InPlace for MarkMACHeader {
    fn output_port(&mut self, _ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        let begin = usize::from(self.offset);
        if let Ok(begin) = begin.try_into() {
            packet.set_mac_offset(begin);
        }
        if self.length > 0 {
            packet.set_network(begin + usize::from(self.length), 0);
        }
        0
    }
}

impl Element for MarkMACHeader {
    in_place!(plain);
}

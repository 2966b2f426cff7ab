// SPDX-License-Identifier: Apache-2.0
//! Checks ARP headers.
//!
//! # Synopsis
//! `CheckARPHeader([OFFSET, VERBOSE, DETAILS])`: the ARP packet is OFFSET bytes (default 0) after the start. The packet must
//! be as long as its address lengths say, and these must be those of Ethernet, IPv4 and IPv6. The network header is
//! marked. VERBOSE (default false) prints a message for every wrong packet, not for the first one only; DETAILS is
//! accepted, the counts by reason always exist.
//! # Ports
//! 1/1-2, agnostic. Output 1 (push) gets wrong packets; they are dropped if it is not connected.
//! # Handlers
//! * `drops` (read): wrong packets. `drop_details` (read): the same by reason.
//! # Example
//! `c :: Classifier(12/0806, -); c[0] -> CheckARPHeader(14) -> ARPPrint -> ...`
use click_wire::ether;

use crate::header_check::{Drops, drop_details, drops};
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "CheckARPHeader",
    ports: "1/1-2",
    processing: "a/ah",
    args: &[optional("OFFSET"), keyword("VERBOSE"), keyword("DETAILS")],
    handlers: &[drops::<CheckARPHeader>(), drop_details()],
    build: |a| {
        let (offset, verbose) = (a.or("OFFSET", 0usize), a.or("VERBOSE", false));
        a.or("DETAILS", false)?;
        Some(Box::new(CheckARPHeader {
            offset: offset?,
            drops: Drops::new("ARP", &REASONS, verbose?),
        }))
    },
    ..Class::DEFAULT
};

const REASONS: [&str; 4] = [
    "tiny packet",
    "too small for addresses",
    "bad hardware type/length",
    "bad protocol type/length",
];

/// Bytes in front of the addresses.
const FIXED: usize = 8;
const ETHERNET: u16 = 1;
const IPV6: u16 = 0x86dd;

struct CheckARPHeader {
    offset: usize,
    drops: Drops,
}

/// The length of the header, or the index of the reason why it is wrong.
fn check(b: &[u8]) -> Result<usize, usize> {
    if b.len() < FIXED {
        return Err(0);
    }
    let (hardware, protocol) = (
        u16::from_be_bytes([b[0], b[1]]),
        u16::from_be_bytes([b[2], b[3]]),
    );
    let (hardware_len, protocol_len) = (usize::from(b[4]), usize::from(b[5]));
    let length = FIXED + 2 * (hardware_len + protocol_len);
    match (hardware, protocol) {
        _ if b.len() < length => Err(1),
        (ETHERNET, _) if hardware_len != 6 => Err(2),
        (_, ether::IPV4) if protocol_len != 4 => Err(3),
        (_, IPV6) if protocol_len != 16 => Err(3),
        _ => Ok(length),
    }
}

impl InPlace for CheckARPHeader {
    const USE: Use = Use::Reads;

    fn output_port(&mut self, ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        match check(packet.data().get(self.offset..).unwrap_or_default()) {
            Ok(length) => {
                packet.set_network(self.offset, length);
                0
            }
            Err(reason) => {
                self.drops.note(ctx, reason);
                1
            }
        }
    }
}

part!(CheckARPHeader, drops: Drops);

impl Element for CheckARPHeader {
    in_place!();

    fn take_state(&mut self, _ctx: &mut Context<'_>, old: &mut dyn Element) {
        if let Some(old) = old.as_any_mut().downcast_mut::<Self>() {
            self.drops.take_from(&old.drops);
        }
    }
}

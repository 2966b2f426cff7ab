// SPDX-License-Identifier: Apache-2.0
//! Checks ICMP headers.
//!
//! # Synopsis
//! `CheckICMPHeader([VERBOSE, DETAILS])`: the length must be one that the type can have, and the checksum right. VERBOSE
//! (default false) prints a message for every wrong packet, not for the first one only; DETAILS is accepted, the
//! counts by reason always exist.
//! # Ports
//! 1/1-2, agnostic. Output 1 (push) gets wrong packets and those that are not ICMP; they are dropped if it is not
//! connected. The IP header must be marked and checked.
//! # Handlers
//! * `drops` (read): wrong packets. `drop_details` (read): the same by reason.
//! # Differences from Click
//! `drop_details` exists without DETAILS.
//! # Example
//! `CheckIPHeader -> c :: IPClassifier(icmp, -); c[0] -> CheckICMPHeader -> ...`
use click_wire::{checksum, icmp, ipv4};

use crate::header_check::{self, CLASS};
use crate::ip_packet;
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "CheckICMPHeader",
    build: |a| header_check::build(a, "ICMP", &REASONS, check),
    ..CLASS
};

const REASONS: [&str; 3] = ["not ICMP", "bad packet length", "bad ICMP checksum"];

/// Bytes of a timestamp message.
const TIMESTAMP: usize = 20;
/// The least part that an error quotes: an IP header and 64 bits (RFC 792).
const QUOTED: usize = ipv4::HEADER + 8;

fn length_is_right(message: &[u8]) -> bool {
    let (kind, length) = (message[0], message.len());
    match kind {
        kind if icmp::is_error(kind) => length >= icmp::HEADER + QUOTED,
        13 | 14 => length == TIMESTAMP,
        15 | 16 => length == icmp::HEADER,
        _ => true,
    }
}

fn check(packet: &Packet) -> Result<(), usize> {
    let header = ip_packet::header(packet).filter(|h| h.protocol() == ipv4::ICMP);
    header.ok_or(0usize)?;
    let message = packet.transport().unwrap_or_default();
    if message.len() < icmp::HEADER || !length_is_right(message) {
        return Err(1);
    }
    match checksum::of(message) {
        0 => Ok(()),
        _ => Err(2),
    }
}

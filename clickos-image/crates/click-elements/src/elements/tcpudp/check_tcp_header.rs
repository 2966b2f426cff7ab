// SPDX-License-Identifier: Apache-2.0
//! Checks TCP headers.
//!
//! # Synopsis
//! `CheckTCPHeader([VERBOSE, DETAILS])`: header length and checksum must be right. VERBOSE (default false) prints a
//! message for every wrong packet, not for the first one only; DETAILS is accepted, the counts by reason always exist.
//! # Ports
//! 1/1-2, agnostic. Output 1 (push) gets wrong packets and those that are not TCP; they are dropped if it is not
//! connected. The IP header must be marked and checked.
//! # Handlers
//! * `drops` (read): wrong packets. `drop_details` (read): the same by reason.
//! # Differences from Click
//! `drop_details` exists without DETAILS.
//! At the end of a source route the checksum covers the destination (RFC 1122, 4.1.3.5).
//! # Example
//! `CheckIPHeader -> c :: IPClassifier(tcp, -); c[0] -> CheckTCPHeader -> ...`
use click_wire::{Error, ipv4, tcp};

use crate::header_check::{self, CLASS};
use crate::ip_packet;
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "CheckTCPHeader",
    build: |a| header_check::build(a, "TCP", &REASONS, check),
    ..CLASS
};

const REASONS: [&str; 3] = ["not TCP", "bad packet length", "bad TCP checksum"];

fn check(packet: &Packet) -> Result<(), usize> {
    let header = ip_packet::header(packet).filter(|h| h.protocol() == ipv4::TCP);
    let header = header.ok_or(0usize)?;
    let length = header.total_len().checked_sub(header.header_len());
    let segment = length
        .and_then(|n| packet.transport()?.get(..n))
        .ok_or(1usize)?;
    let destination = ip_packet::final_destination(packet).ok_or(0usize)?;
    match tcp::Repr::parse(segment, header.source(), destination) {
        Ok(_) => Ok(()),
        Err(Error::BadChecksum) => Err(2),
        Err(_) => Err(1),
    }
}

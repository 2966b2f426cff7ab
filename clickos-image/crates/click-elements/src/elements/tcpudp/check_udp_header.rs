// SPDX-License-Identifier: Apache-2.0
//! Checks UDP headers.
//!
//! # Synopsis
//! `CheckUDPHeader([VERBOSE, DETAILS])`: length and, if there is one, checksum must be right. VERBOSE (default false)
//! prints a message for every wrong packet, not for the first one only; DETAILS is accepted, the counts by reason always
//! exist.
//! # Ports
//! 1/1-2, agnostic. Output 1 (push) gets wrong packets and those that are not UDP; they are dropped if it is not
//! connected. The IP header must be marked and checked.
//! # Handlers
//! * `drops` (read): wrong packets. `drop_details` (read): the same by reason.
//! # Differences from Click
//! `drop_details` exists without DETAILS.
//! At the end of a source route the checksum covers the destination (RFC 1122, 4.1.3.5).
//! # Example
//! `CheckIPHeader -> c :: IPClassifier(udp, -); c[0] -> CheckUDPHeader -> ...`
use click_wire::{Error, ipv4, udp};

use crate::header_check::{self, CLASS};
use crate::ip_packet;
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "CheckUDPHeader",
    build: |a| header_check::build(a, "UDP", &REASONS, check),
    ..CLASS
};

const REASONS: [&str; 3] = ["not UDP", "bad packet length", "bad UDP checksum"];

fn check(packet: &Packet) -> Result<(), usize> {
    let header = ip_packet::header(packet).filter(|h| h.protocol() == ipv4::UDP);
    let header = header.ok_or(0usize)?;
    let destination = ip_packet::final_destination(packet).ok_or(0usize)?;
    let datagram = packet.transport().unwrap_or_default();
    match udp::Repr::parse(datagram, header.source(), destination) {
        Ok(_) => Ok(()),
        Err(Error::BadChecksum) => Err(2),
        Err(_) => Err(1),
    }
}

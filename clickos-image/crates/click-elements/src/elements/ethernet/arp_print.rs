// SPDX-License-Identifier: Apache-2.0
//! Prints ARP packets as tcpdump does, a line each.
//!
//! # Synopsis
//! `ARPPrint([LABEL, TIMESTAMP, ETHER, ACTIVE])`: after LABEL and, unless TIMESTAMP is false, the time. ETHER (default
//! false) adds the addresses of the Ethernet header. Nothing is printed unless ACTIVE (default true).
//! # Ports
//! 1/1, agnostic. The network header must be marked (`MarkIPHeader`, `CheckARPHeader`); packets without it are not
//! printed.
//! # Handlers
//! * `active` (read, write): ACTIVE.
//! # Differences from Click
//! OUTFILE, CHANNEL and NBYTES are missing. If a TCP packet ends before its header gives the
//! header's length, PAYLOAD shows all of it. An ARP packet of another protocol is printed.
//! # Example
//! `FromDevice(0) -> CheckARPHeader(14) -> ARPPrint(in) -> Discard;`
use core::fmt::Write as _;

use click_wire::{arp, ether};

use crate::prelude::*;
use crate::print_line::stamp;

pub static ELEMENT: Class = Class {
    name: "ARPPrint",
    args: &[
        optional("LABEL"),
        keyword("TIMESTAMP"),
        keyword("ETHER"),
        keyword("ACTIVE"),
    ],
    handlers: &[read_write(
        "active",
        |me: &mut ARPPrint, _| text(me.active),
        set!(|me, active, _| me.active = active),
    )],
    build: |a| {
        let (label, timestamp) = (a.or("LABEL", String::new()), a.or("TIMESTAMP", true));
        let (ether, active) = (a.or("ETHER", false), a.or("ACTIVE", true));
        Some(Box::new(ARPPrint {
            label: label?,
            timestamp: timestamp?,
            ether: ether?,
            active: active?,
        }))
    },
    ..Class::DEFAULT
};

struct ARPPrint {
    label: String,
    timestamp: bool,
    ether: bool,
    active: bool,
}

/// Trailers, an encapsulation of 4.2BSD (RFC 893).
const TRAILER: u16 = 0x1000;

/// The fields of an ARP packet.
fn describe(b: &[u8]) -> String {
    if b.len() < 8 {
        return format!("truncated-arp ({})", b.len());
    }
    let number = |at: usize| u16::from_be_bytes([b[at], b[at + 1]]);
    let (hardware, protocol, operation) = (number(0), number(2), number(6));
    let (hardware_len, protocol_len) = (b[4], b[5]);
    let known = [ether::IPV4, TRAILER].contains(&protocol);
    if !known || protocol_len != 4 || hardware_len == 0 {
        return format!(
            "arp-#{operation} for proto #{protocol} ({protocol_len}) hardware #{hardware} ({hardware_len})"
        );
    }
    let Some(mut bytes) = b.first_chunk::<{ arp::LENGTH }>().copied() else {
        return format!("truncated-arp ({})", b.len());
    };
    // the addresses are read as Ethernet's, whatever kind and lengths it says
    bytes[..6].copy_from_slice(&[0, 1, 8, 0, 6, 4]);
    let repr = arp::Repr::parse(&bytes).expect("long enough, and of the kind just written");
    let mut line = if protocol == TRAILER { "trailer-" } else { "" }.to_string();
    line += &operation_text(&repr);
    if hardware != 1 {
        let _ = write!(line, " hardware #{hardware}");
    }
    line
}

fn operation_text(repr: &arp::Repr) -> String {
    let (sender, target) = (EtherAddr(repr.sender_mac), EtherAddr(repr.target_mac));
    let (sender_ip, target_ip) = (repr.sender_ip, repr.target_ip);
    match repr.operation {
        arp::REQUEST if repr.target_mac == [0; 6] => {
            format!("arp who-has {target_ip} tell {sender_ip}")
        }
        arp::REQUEST => format!("arp who-has {target_ip} ({target}) tell {sender_ip}"),
        arp::REPLY => format!("arp reply {sender_ip} is-at {sender}"),
        3 => format!("rarp who-is {target} tell {sender}"),
        4 => format!("rarp reply {target} at {target_ip}"),
        8 => format!("invarp who-is {target} tell {sender}"),
        9 => format!("invarp reply {target} at {target_ip}"),
        other => format!("arp-#{other}"),
    }
}

impl ARPPrint {
    fn line(&self, packet: &Packet, at: isize) -> String {
        let mut line = String::new();
        if !self.label.is_empty() {
            let _ = write!(line, "{}: ", self.label);
        }
        if self.timestamp {
            stamp(&mut line, packet.timestamp_ns());
            line.push_str(": ");
        }
        let start = packet.mac_offset().unwrap_or(0);
        let frame = packet.mac().unwrap_or(packet.data());
        if self.ether && at - start >= 14 {
            if let Ok(header) = ether::Repr::parse(frame) {
                let (from, to) = (EtherAddr(header.source), EtherAddr(header.destination));
                let _ = write!(line, "{from} > {to}: ");
            }
        }
        line + &describe(packet.network().unwrap_or_default())
    }
}

impl InPlace for ARPPrint {
    fn output_port(&mut self, ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        if let (true, Some(at)) = (self.active, packet.network_offset()) {
            ctx.print(&self.line(packet, at));
        }
        0
    }
}

impl Element for ARPPrint {
    in_place!();
}

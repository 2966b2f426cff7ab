// SPDX-License-Identifier: Apache-2.0
//! Checks IP headers.
//!
//! # Synopsis
//! `CheckIPHeader([OFFSET, CHECKSUM, BADSRC, GOODDST, INTERFACES, VERBOSE, DETAILS])`: the header is OFFSET bytes
//! (default 0) behind the start. Length, version, header length, total length, checksum (unless CHECKSUM is false)
//! must be right, and the source not in BADSRC, unless the destination is in GOODDST. INTERFACES, a list of
//! `ADDRESS/PREFIX`, adds the broadcast addresses to BADSRC and the addresses to GOODDST. Sets header and destination
//! annotations, and cuts off what is behind the packet's total length.
//! # Ports
//! 1/1-2, agnostic. Output 1 (push) gets wrong packets; they are dropped if it is not connected.
//! # Handlers
//! * `drops` (read): wrong packets. `drop_details` (read): the same by reason.
//! # Example
//! `FromDevice(0) -> Strip(14) -> CheckIPHeader(INTERFACES 10.0.0.1/24) -> Discard;`
use click_core::text::split_words;
use click_wire::ipv4::View as Header;
use click_wire::{Error, ipv4};

use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "CheckIPHeader",
    ports: "1/1-2",
    processing: "a/ah",
    args: &[
        optional("OFFSET"),
        keyword("CHECKSUM"),
        keyword("BADSRC"),
        keyword("GOODDST"),
        keyword("INTERFACES"),
        keyword("VERBOSE"),
        keyword("DETAILS"),
    ],
    handlers: &[read("drops"), read("drop_details")],
    build,
    ..Class::DEFAULT
};

fn build(a: &mut Args<'_>) -> Built {
    let (offset, checksum) = (a.or("OFFSET", 0usize), a.or("CHECKSUM", true));
    let (verbose, details) = (a.or("VERBOSE", false), a.or("DETAILS", false));
    let mut bad_sources: Vec<Ipv4Addr> = list(a, "BADSRC");
    let mut good_destinations: Vec<Ipv4Addr> = list(a, "GOODDST");
    let interfaces: Vec<Prefix> = list(a, "INTERFACES");
    if !interfaces.is_empty() {
        bad_sources.extend([Ipv4Addr::UNSPECIFIED, Ipv4Addr::BROADCAST]);
    }
    for prefix in interfaces {
        let mask = u32::from(prefix.mask);
        good_destinations.push(prefix.address);
        if mask.leading_ones() < 31 {
            bad_sources.push(Ipv4Addr::from(u32::from(prefix.address) | !mask));
        }
    }
    details?;
    Some(Box::new(CheckIPHeader {
        offset: offset?,
        checksum: checksum?,
        verbose: verbose?,
        bad_sources,
        good_destinations,
        drops: [0; REASONS.len()],
    }))
}

fn list<T: FromArg>(a: &mut Args<'_>, name: &str) -> Vec<T> {
    let words = a
        .or(name, String::new())
        .map(|text| split_words(&text))
        .unwrap_or_default();
    words
        .iter()
        .filter_map(|word| a.parse(name, word))
        .collect()
}

/// Why a packet is wrong, in the order of the checks.
const REASONS: [&str; 6] = [
    "tiny packet",
    "bad IP version",
    "bad IP header length",
    "bad IP length",
    "bad IP checksum",
    "bad source address",
];

/// The index of the reason.
fn reason(bytes: &[u8], error: Error) -> usize {
    match error {
        _ if bytes.len() < ipv4::HEADER => 0,
        Error::BadVersion => 1,
        _ if usize::from(bytes[0] & 15) * 4 < ipv4::HEADER => 2,
        _ => 3,
    }
}

struct CheckIPHeader {
    offset: usize,
    checksum: bool,
    verbose: bool,
    bad_sources: Vec<Ipv4Addr>,
    good_destinations: Vec<Ipv4Addr>,
    drops: [u64; REASONS.len()],
}

/// What a right header says.
struct Found {
    header_len: usize,
    total_len: usize,
    destination: Ipv4Addr,
}

impl CheckIPHeader {
    /// What the header says, or the index of the reason why it is wrong.
    fn check(&self, bytes: &[u8]) -> Result<Found, usize> {
        let header = Header::new_checked(bytes).map_err(|error| reason(bytes, error))?;
        if self.checksum && !header.checksum_is_right() {
            return Err(4);
        }
        let destination = header.destination();
        if self.bad_sources.contains(&header.source())
            && !self.good_destinations.contains(&destination)
        {
            return Err(5);
        }
        Ok(Found {
            header_len: header.header_len(),
            total_len: header.total_len(),
            destination,
        })
    }

    fn wrong(&mut self, ctx: &mut Context<'_>, reason: usize) {
        if self.verbose || self.drops.iter().all(|n| *n == 0) {
            let line = format!(
                "{}: IP header check failed: {}",
                ctx.name(),
                REASONS[reason]
            );
            ctx.print(&line);
        }
        self.drops[reason] += 1;
    }
}

impl Element for CheckIPHeader {
    fn process(&mut self, ctx: &mut Context<'_>, mut packet: Packet) -> Out {
        let bytes = packet.data().get(self.offset..).unwrap_or_default();
        match self.check(bytes) {
            Ok(found) => {
                packet.take(packet.len() - self.offset - found.total_len);
                packet.set_network(self.offset, found.header_len);
                packet.anno_mut().set_dst_ip(found.destination.octets());
                Out::Port(0, packet)
            }
            Err(reason) => {
                self.wrong(ctx, reason);
                Out::Port(1, packet)
            }
        }
    }

    fn read(&self, _view: &View<'_>, handler: &str, _param: &str) -> Text {
        match handler {
            "drops" => text(self.drops.iter().sum::<u64>()),
            "drop_details" => Ok(self
                .drops
                .iter()
                .zip(REASONS)
                .map(|(count, reason)| format!("{count}\t{reason}\n"))
                .collect()),
            _ => undeclared(handler),
        }
    }

    fn take_state(&mut self, _ctx: &mut Context<'_>, old: &mut dyn Element) {
        if let Some(old) = old.as_any_mut().downcast_mut::<Self>() {
            self.drops = old.drops;
        }
    }
}

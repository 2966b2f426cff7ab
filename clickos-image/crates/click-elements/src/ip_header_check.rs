// SPDX-License-Identifier: Apache-2.0
//! The checks of IP headers, for the classes that do them with and without the checksum.
use click_core::anno::PacketType;
use click_core::text::split_words;
use click_wire::ipv4::View as Header;
use click_wire::{Error, checksum, ipv4};

use crate::header_check::{Drops, drop_details, drops};
use crate::prelude::*;

/// A class that checks IP headers, but for its name; `build` has to be set.
pub const CLASS: Class = Class {
    ports: "1/1-2",
    processing: "a/ah",
    args: &[
        keyword("OFFSET"),
        keyword("CHECKSUM"),
        keyword("BADSRC"),
        keyword("GOODDST"),
        keyword("INTERFACES"),
        keyword("ROUTED"),
        keyword("VERBOSE"),
        keyword("DETAILS"),
        rest("ARGUMENT"),
    ],
    handlers: &[drops::<CheckIp>(), drop_details()],
    ..Class::DEFAULT
};

/// Builds an element of such a class.
pub fn build(a: &mut Args<'_>, checksum: bool) -> Built {
    let (mut offset, checksum) = (a.or("OFFSET", 0usize), a.or("CHECKSUM", checksum));
    let (verbose, details) = (a.or("VERBOSE", false), a.or("DETAILS", false));
    let mut sources = Sources::of(a);
    match a.rest().to_vec().as_slice() {
        [] => {}
        [one] if one.starts_with(|c: char| c.is_ascii_digit()) && !one.contains('.') => {
            offset = a.parse("OFFSET", one);
        }
        [bad, rest @ ..] if rest.len() < 2 => {
            sources.add_old(a, bad);
            offset = rest.first().map_or(offset, |n| a.parse("OFFSET", n));
        }
        _ => a.error(
            "ARGUMENT",
            "too many arguments, expected OFFSET or BADSRC, OFFSET",
        ),
    }
    let routed = a.or("ROUTED", false);
    details?;
    let (routed, mut checker) = (routed?, Checker::new(offset?, checksum?, &sources));
    checker.routed = routed;
    let reasons = if routed { REASONS.len() } else { UNROUTED };
    Some(Box::new(CheckIp {
        checker,
        drops: Drops::new("IP", &REASONS[..reasons], verbose?),
    }))
}

/// The packets with a wrong source address.
pub struct Sources {
    bad: Vec<Ipv4Addr>,
    good_destinations: Vec<Ipv4Addr>,
}

impl Sources {
    /// Reads BADSRC, GOODDST and INTERFACES.
    pub fn of(a: &mut Args<'_>) -> Self {
        let mut sources = Self {
            bad: list(a, "BADSRC"),
            good_destinations: list(a, "GOODDST"),
        };
        let interfaces: Vec<Prefix> = list(a, "INTERFACES");
        if !interfaces.is_empty() {
            sources.add_nobody();
        }
        for prefix in interfaces {
            let mask = u32::from(prefix.mask);
            sources.good_destinations.push(prefix.address);
            if mask.leading_ones() < 31 {
                let broadcast = u32::from(prefix.address) | !mask;
                sources.bad.push(broadcast.into());
            }
        }
        sources
    }

    /// Adds the addresses of an argument in the older form.
    pub fn add_old(&mut self, a: &mut Args<'_>, text: &str) {
        self.bad.extend(addresses::<Ipv4Addr>(a, "BADSRC", text));
        self.add_nobody();
    }

    fn add_nobody(&mut self) {
        self.bad
            .extend([Ipv4Addr::UNSPECIFIED, Ipv4Addr::BROADCAST]);
    }
}

fn list<T: FromArg>(a: &mut Args<'_>, name: &str) -> Vec<T> {
    let text = a.or(name, String::new()).unwrap_or_default();
    addresses(a, name, &text)
}

fn addresses<T: FromArg>(a: &mut Args<'_>, name: &str, text: &str) -> Vec<T> {
    let words = split_words(&click_core::text::unquote(text));
    words
        .iter()
        .filter_map(|word| a.parse(name, word))
        .collect()
}

/// Why a packet is wrong, in the order of the checks.
pub const REASONS: [&str; 9] = [
    "tiny packet",
    "bad IP version",
    "bad IP header length",
    "bad IP length",
    "bad IP checksum",
    "bad source address",
    "impossible address",
    "sent to several hosts",
    "redirect",
];
/// The reasons without those of ROUTED.
pub const UNROUTED: usize = 6;

/// The index of the reason.
fn reason(bytes: &[u8], error: Error) -> usize {
    match error {
        _ if bytes.len() < ipv4::HEADER => 0,
        Error::BadVersion => 1,
        _ if usize::from(bytes[0] & 15) * 4 < ipv4::HEADER => 2,
        _ => 3,
    }
}

/// Addresses that are looked at together, which takes no decision for each.
type Four = [u32; 4];

/// The checks to do.
pub struct Checker {
    offset: usize,
    checksum: bool,
    /// Wrong source addresses; the last ones come more than once if there are fewer.
    bad: Vec<Four>,
    good_destinations: Vec<Ipv4Addr>,
    /// Only packets that a router may forward are right.
    routed: bool,
}

/// True if no host that a router serves has an address with this first octet: this network, loopback, groups, and
/// those that are reserved (RFC 1812, section 5.3.7).
#[inline(always)]
fn is_impossible(octet: u8) -> bool {
    octet.wrapping_sub(1) >= 0xdf || octet == 127
}

/// An address as it is compared.
#[inline]
fn word(address: Ipv4Addr) -> u32 {
    u32::from_ne_bytes(address.octets())
}

/// The fields of a valid header.
struct Found {
    header_len: usize,
    total_len: usize,
    destination: Ipv4Addr,
}

/// Where the header has the protocol.
const PROTOCOL: usize = 9;
/// The type of an ICMP redirect.
const REDIRECT: u8 = 5;
/// The first byte of a header of version 4 without options.
const PLAIN: u8 = 0x45;

impl Checker {
    /// Headers are at `offset`; whether their checksums matter, and where they must not come from.
    pub fn new(offset: usize, checksum: bool, sources: &Sources) -> Self {
        let four = |some: &[Ipv4Addr]| core::array::from_fn(|n| word(some[n.min(some.len() - 1)]));
        Self {
            offset,
            checksum,
            bad: sources
                .bad
                .chunks(size_of::<Four>() / size_of::<u32>())
                .map(four)
                .collect(),
            good_destinations: sources.good_destinations.clone(),
            routed: false,
        }
    }

    /// The index of the reason why a router must not forward a packet with a valid header.
    #[inline(always)]
    fn check_routed(&self, packet: &Packet) -> Result<(), usize> {
        let Some([protocol, _, _, source, _, _, _, destination]) = self.fields(packet) else {
            return Ok(());
        };
        match packet.anno().packet_type() {
            _ if is_impossible(*source) | is_impossible(*destination) => Err(6),
            PacketType::Broadcast | PacketType::Multicast => Err(7),
            _ if *protocol == ipv4::ICMP && self.is_redirect(packet) => Err(8),
            _ => Ok(()),
        }
    }

    /// The bytes from the protocol to the destination's first octet.
    #[inline(always)]
    fn fields<'a>(&self, packet: &'a Packet) -> Option<&'a [u8; 8]> {
        packet.data().get(self.offset + PROTOCOL..)?.first_chunk()
    }

    /// True for an ICMP redirect, which concerns the hosts of one link (RFC 1122, section 3.2.2.2).
    #[cold]
    fn is_redirect(&self, packet: &Packet) -> bool {
        let header = Header::new_checked(&packet.data()[self.offset..]);
        header.is_ok_and(|h| h.is_first() && h.payload().first() == Some(&REDIRECT))
    }

    /// The header's values, or the index of the reason why it is wrong.
    #[inline(always)]
    fn check(&self, bytes: &[u8]) -> Result<Found, usize> {
        match bytes.first_chunk() {
            Some(header) if header[0] == PLAIN => self.check_plain::<true>(header, bytes.len()),
            _ => self.check_any(bytes),
        }
    }

    /// Like `check` for a header without options, with `available` bytes; `MORE` says whether its addresses
    /// matter.
    #[inline(always)]
    fn check_plain<const MORE: bool>(
        &self,
        header: &[u8; ipv4::HEADER],
        available: usize,
    ) -> Result<Found, usize> {
        let view = Header::new_unchecked(header);
        let total_len = view.total_len();
        if total_len < ipv4::HEADER || total_len > available {
            return Err(3);
        }
        if self.checksum && !checksum::is_right_header(header) {
            return Err(4);
        }
        if MORE {
            self.check_source(&view)?;
        }
        Ok(Found {
            header_len: ipv4::HEADER,
            total_len,
            destination: view.destination(),
        })
    }

    #[cold]
    fn check_any(&self, bytes: &[u8]) -> Result<Found, usize> {
        let header = Header::new_checked(bytes).map_err(|error| reason(bytes, error))?;
        if self.checksum && !header.checksum_is_right() {
            return Err(4);
        }
        self.check_source(&header)?;
        Ok(Found {
            header_len: header.header_len(),
            total_len: header.total_len(),
            destination: header.destination(),
        })
    }

    #[inline]
    fn check_source<T: AsRef<[u8]>>(&self, header: &Header<T>) -> Result<(), usize> {
        let source = word(header.source());
        let is_in = |four: &Four| {
            four.iter()
                .fold(false, |found, bad| found | (*bad == source))
        };
        if self.bad.iter().any(is_in) {
            return self.check_destination(header.destination());
        }
        Ok(())
    }

    /// Checks the destination of a packet with a wrong source.
    #[cold]
    fn check_destination(&self, destination: Ipv4Addr) -> Result<(), usize> {
        let good = self.good_destinations.contains(&destination);
        if good { Ok(()) } else { Err(5) }
    }

    /// Checks a packet, marks its header, sets its destination annotation, and cuts off what is behind it.
    ///
    /// # Errors
    /// The index of the reason why it is wrong.
    #[inline]
    pub fn run(&self, packet: &mut Packet) -> Result<(), usize> {
        let bytes = packet.data().get(self.offset..).unwrap_or_default();
        let found = self.check(bytes)?;
        let behind = bytes.len() - found.total_len;
        if self.routed {
            self.check_routed(packet)?;
        }
        self.mark(packet, &found, behind);
        Ok(())
    }

    /// Does the same if the packet is a right one without options, as nearly all are; says whether it is.
    /// `MORE` says whether its addresses matter, `ROUTED` whether it has to be one to forward.
    #[inline(always)]
    fn run_plain<const MORE: bool, const ROUTED: bool>(&self, packet: &mut Packet) -> bool {
        let Some(bytes) = packet.data().get(self.offset..) else {
            return false;
        };
        let Some(header) = bytes.first_chunk().filter(|header| header[0] == PLAIN) else {
            return false;
        };
        let Ok(found) = self.check_plain::<MORE>(header, bytes.len()) else {
            return false;
        };
        let behind = bytes.len() - found.total_len;
        if ROUTED && self.check_routed(packet).is_err() {
            return false;
        }
        self.mark(packet, &found, behind);
        true
    }

    /// Runs until a packet has to be looked at more closely; says whether none has.
    fn run_all(&self, batch: &mut Batch) -> bool {
        let mut packets = batch.iter_mut();
        match (self.routed, self.bad.is_empty()) {
            (false, true) => packets.all(|packet| self.run_plain::<false, false>(packet)),
            (false, false) => packets.all(|packet| self.run_plain::<true, false>(packet)),
            (true, _) => packets.all(|packet| self.run_plain::<true, true>(packet)),
        }
    }

    #[inline(always)]
    fn mark(&self, packet: &mut Packet, found: &Found, behind: usize) {
        if behind > 0 {
            packet.take(behind);
        }
        packet.set_network(self.offset, found.header_len);
        packet.anno_mut().set_dst_ip(found.destination.octets());
    }
}

struct CheckIp {
    checker: Checker,
    drops: Drops,
}

impl InPlace for CheckIp {
    const USE: Use = Use::Reads;

    #[inline(always)]
    fn output_port(&mut self, ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        match self.checker.run(packet) {
            Ok(()) => 0,
            Err(reason) => {
                self.drops.note(ctx, reason);
                1
            }
        }
    }
}

part!(CheckIp, drops: Drops);

impl Element for CheckIp {
    fn push(&mut self, ctx: &mut Context<'_>, _port: usize, mut batch: Batch) {
        if self.checker.run_all(&mut batch) {
            return ctx.push(0, batch);
        }
        // nothing is wrong with checking a packet twice
        push_in_place(self, ctx, batch);
    }

    fn pull(&mut self, ctx: &mut Context<'_>, _port: usize, max: usize) -> Batch {
        pull_in_place(self, ctx, max)
    }

    fn is_plain(&self) -> bool {
        self.drops.are_quiet()
    }

    fn take_state(&mut self, _ctx: &mut Context<'_>, old: &mut dyn Element) {
        if let Some(old) = old.as_any_mut().downcast_mut::<Self>() {
            self.drops.take_from(&old.drops);
        }
    }
}

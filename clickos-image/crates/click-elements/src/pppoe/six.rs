// SPDX-License-Identifier: Apache-2.0
//! IPv6 on a link: interface identifiers (RFC 5072), router advertisements and answers to neighbors (RFC 4861).
use alloc::vec;
use alloc::vec::Vec;
use core::net::Ipv6Addr;

use click_wire::ppp::{self, Options};

use super::Moment;
use super::layers::put;
use super::negotiation::{Layer, Verdict};
use crate::ip6::neighbor::{ADVERTISEMENT, ALL_NODES, ROUTER, SOLICITATION, SOLICITED};
use crate::ip6::{self, Address, HEADER, HOP_LIMIT, ICMP6, View};

const OPTION_IDENTIFIER: u8 = 1;
const ROUTER_SOLICITATION: u8 = 133;
const ROUTER_ADVERTISEMENT: u8 = 134;
/// Seconds that a subscriber may use this router, and its prefix for old and for new connections.
const LIFETIME_S: u16 = 1800;
const VALID_S: u32 = 86_400;
const PREFERRED_S: u32 = 14_400;
/// The hop limit of a subscriber's packets.
const HOPS: u8 = 64;
/// An advertisement's message: its fields, the prefix, the MTU.
const FIXED: usize = 16;
const ADVERTISED: usize = FIXED + 32 + 8;
/// A neighbor's message: type, code, sum, flags, target.
const NEIGHBOR: usize = 24;

/// IPv6 on a link.
pub struct Network6 {
    /// This end's interface identifier.
    pub ours: u64,
    /// The subscriber's.
    pub theirs: u64,
}

impl Network6 {
    /// Before its negotiation.
    pub fn new(ours: u64) -> Self {
        Self { ours, theirs: 0 }
    }
}

/// The identifier of an Ethernet address (RFC 5072, section 4.1).
pub fn identifier([a, b, c, d, e, f]: [u8; 6]) -> u64 {
    u64::from_be_bytes([a ^ 2, b, c, 0xff, 0xfe, d, e, f])
}

/// A random identifier that is no Ethernet address'.
fn random(moment: &mut Moment<'_>) -> u64 {
    (moment.number() & !(2 << 56)).max(1)
}

impl Layer for Network6 {
    const PROTOCOL: u16 = ppp::IPV6CP;

    fn wanted(&self) -> Vec<u8> {
        let mut options = Vec::new();
        put(&mut options, OPTION_IDENTIFIER, &self.ours.to_be_bytes());
        options
    }

    fn judge(&mut self, options: Options<'_>, moment: &mut Moment<'_>) -> Verdict {
        let (mut naks, mut rejects, mut named) = (Vec::new(), Vec::new(), None);
        for option in options {
            match (option.kind, <[u8; 8]>::try_from(option.value)) {
                (OPTION_IDENTIFIER, Ok(value)) => named = Some(u64::from_be_bytes(value)),
                _ => rejects.extend(option.whole),
            }
        }
        match named.filter(|named| *named != 0 && *named != self.ours) {
            Some(good) => self.theirs = good,
            None => put(&mut naks, OPTION_IDENTIFIER, &random(moment).to_be_bytes()),
        }
        Verdict::of(naks, rejects)
    }

    fn refused(&mut self, _: Options<'_>, rejected: bool, moment: &mut Moment<'_>) -> bool {
        self.ours = random(moment);
        !rejected
    }
}

/// The link-local address of an identifier.
fn link_local(identifier: u64) -> Address {
    let network = 0xfe80u128 << 112;
    Address(Ipv6Addr::from(network | u128::from(identifier)))
}

/// The first 64 bits of an address.
pub fn prefix_of(address: Address) -> u64 {
    (u128::from(address.0) >> 64) as u64
}

/// What a packet asks for that is for the link alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asks {
    /// An advertisement of the router.
    Router,
    /// An advertisement of its address, for this neighbor.
    Neighbor(Address),
    /// Nothing that this end answers.
    Nothing,
}

/// True if a packet does not leave the link that it came by.
pub fn is_for_link(header: View<'_>) -> bool {
    let ends = [header.source(), header.destination()];
    let is_local = |address: Address| {
        address.0.is_unicast_link_local() || address.0.is_multicast() || address.0.is_unspecified()
    };
    ends.into_iter().any(is_local)
}

/// Reads a packet of the link alone (RFC 4861, sections 6.1.1 and 7.1.1).
pub fn asks(packet: &[u8], ours: u64) -> Asks {
    let whole = View::of(packet).and_then(|header| {
        let is_fresh = header.next_header() == ICMP6 && header.hop_limit() == HOP_LIMIT;
        let end = HEADER + header.payload_len();
        packet.get(..end).filter(|_| is_fresh).zip(Some(header))
    });
    let Some((packet, header)) = whole else {
        return Asks::Nothing;
    };
    let message = &packet[HEADER..];
    if ip6::transport_checksum(packet) != 0 {
        return Asks::Nothing;
    }
    match *message {
        [ROUTER_SOLICITATION, 0, ..] if message.len() >= 8 => Asks::Router,
        [SOLICITATION, 0, ..] if message.len() >= NEIGHBOR => {
            let right = Address::at(&message[8..]) == Some(link_local(ours));
            let is_host = header.source().0.is_unicast_link_local();
            match right && is_host && header.source() != link_local(ours) {
                true => Asks::Neighbor(header.source()),
                false => Asks::Nothing,
            }
        }
        _ => Asks::Nothing,
    }
}

/// A PPP packet that advertises this router, a subscriber's prefix and the link's MTU.
pub fn advertisement(ours: u64, prefix: u64, mtu: u16) -> Vec<u8> {
    let mut message = [0; ADVERTISED];
    message[..8].copy_from_slice(&[ROUTER_ADVERTISEMENT, 0, 0, 0, HOPS, 0, 0, 0]);
    message[6..8].copy_from_slice(&LIFETIME_S.to_be_bytes());
    let (option, rest) = message[FIXED..].split_at_mut(32);
    // the prefix is on the link, and hosts make addresses of it
    option[..4].copy_from_slice(&[3, 4, 64, 0xc0]);
    option[4..8].copy_from_slice(&VALID_S.to_be_bytes());
    option[8..12].copy_from_slice(&PREFERRED_S.to_be_bytes());
    option[16..24].copy_from_slice(&prefix.to_be_bytes());
    rest[..2].copy_from_slice(&[5, 1]);
    rest[4..].copy_from_slice(&u32::from(mtu).to_be_bytes());
    packet(link_local(ours), ALL_NODES.0, &message)
}

/// A PPP packet that tells a neighbor that this router has its address.
pub fn answer(ours: u64, to: Address) -> Vec<u8> {
    let mut message = [0; NEIGHBOR];
    (message[0], message[4]) = (ADVERTISEMENT, ROUTER | SOLICITED);
    message[8..].copy_from_slice(&link_local(ours).0.octets());
    packet(link_local(ours), to, &message)
}

fn packet(from: Address, to: Address, message: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; HEADER + message.len()];
    bytes[HEADER..].copy_from_slice(message);
    ip6::emit(&mut bytes, ICMP6, from, to);
    ip6::fill_checksum(&mut bytes, 2);
    [&ppp::IPV6.to_be_bytes(), &bytes[..]].concat()
}

// SPDX-License-Identifier: Apache-2.0
//! What becomes of packets of one version of IP in the other (RFC 7915; where it leaves a choice, as Click does).
use click_wire::ipv4::{self, View as Header4};
use click_wire::{checksum, icmp};

use super::{Address, HEADER, ICMP6, Repr, View as Header6, fill_checksum};
use crate::prelude::*;

/// A version of IP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    Four,
    Six,
}

impl Version {
    /// Bytes of a header that is written here.
    fn header_len(self) -> usize {
        match self {
            Self::Four => ipv4::HEADER,
            Self::Six => HEADER,
        }
    }
}

/// Turns a packet into one of the other version; false if there is none for it.
pub fn translate(packet: &mut Packet, to: Version) -> bool {
    let Some(new) = Replaced::of(packet.data(), to) else {
        return false;
    };
    packet.take(packet.len() - new.packet_len);
    packet.pull(new.old_len);
    if !packet.push(new.len) {
        return false;
    }
    let bytes = packet.data_mut();
    bytes[..new.len].copy_from_slice(&new.bytes[..new.len]);
    let right = fill_transport_checksum(bytes, to);
    packet.set_network(0, to.header_len());
    right
}

/// The header fields that both versions have, in numbers of version 4.
struct Common {
    tos: u8,
    ttl: u8,
    protocol: u8,
    source: Ipv4Addr,
    destination: Ipv4Addr,
    header_len: usize,
    payload_len: usize,
}

/// Protocols that are extensions of an IPv6 header: options, routing, fragments, authentication, more options.
const EXTENSIONS: [u8; 5] = [0, 43, 44, 51, 60];

impl Common {
    /// What the header of another version than `to` says; `None` for fragments and what cannot be said in `to`.
    fn of(bytes: &[u8], to: Version) -> Option<Self> {
        match to {
            Version::Six => Self::of_ip4(bytes),
            Version::Four => Self::of_ip6(bytes),
        }
    }

    fn of_ip4(bytes: &[u8]) -> Option<Self> {
        let header = Header4::new_unchecked(bytes.first_chunk::<{ ipv4::HEADER }>()?);
        let header_len = header.header_len();
        let whole = header.fragment() & (ipv4::MORE_FRAGMENTS | ipv4::OFFSET) == 0;
        let right = whole && bytes[0] >> 4 == 4 && header_len >= ipv4::HEADER;
        right.then_some(Self {
            tos: header.tos(),
            ttl: header.ttl(),
            protocol: header.protocol(),
            source: header.source(),
            destination: header.destination(),
            header_len,
            payload_len: header.total_len().checked_sub(header_len)?,
        })
    }

    fn of_ip6(bytes: &[u8]) -> Option<Self> {
        let header = Header6::of(bytes).filter(|h| h.version() == 6)?;
        let protocol = match header.next_header() {
            ICMP6 => ipv4::ICMP,
            other => Some(other).filter(|p| !EXTENSIONS.contains(p))?,
        };
        Some(Self {
            tos: header.traffic_class(),
            ttl: header.hop_limit(),
            protocol,
            source: header.source().ip4()?,
            destination: header.destination().ip4()?,
            header_len: HEADER,
            payload_len: header.payload_len(),
        })
    }

    /// Writes a header of version `to` in front of that many bytes; returns how long it is.
    fn emit(&self, to: Version, payload_len: u16, bytes: &mut [u8]) -> usize {
        match to {
            Version::Four => self.emit_ip4(payload_len, bytes),
            Version::Six => self.emit_ip6(payload_len, bytes),
        }
    }

    fn emit_ip4(&self, payload_len: u16, bytes: &mut [u8]) -> usize {
        let header = ipv4::Repr {
            tos: self.tos,
            id: 0,
            fragment: ipv4::DONT_FRAGMENT,
            ttl: self.ttl,
            protocol: self.protocol,
            source: self.source,
            destination: self.destination,
            payload_len,
        };
        header.emit(bytes);
        ipv4::HEADER
    }

    fn emit_ip6(&self, payload_len: u16, bytes: &mut [u8]) -> usize {
        let header = Repr {
            traffic_class: self.tos,
            payload_len,
            next_header: match self.protocol {
                ipv4::ICMP => ICMP6,
                other => other,
            },
            hop_limit: self.ttl,
            source: Address::of_ip4(self.source),
            destination: Address::of_ip4(self.destination),
        };
        header.emit(bytes);
        HEADER
    }
}

/// The most bytes of headers that change: of an ICMPv6 error with the start of a packet in it.
const MAX: usize = HEADER + icmp::HEADER + HEADER;

/// Headers that take the place of those at the start of a packet.
struct Replaced {
    bytes: [u8; MAX],
    len: usize,
    /// Bytes of the old ones.
    old_len: usize,
    /// Bytes of the old packet, without what follows it.
    packet_len: usize,
}

impl Replaced {
    fn of(bytes: &[u8], to: Version) -> Option<Self> {
        let outer = Common::of(bytes, to)?;
        let packet_len = outer.header_len + outer.payload_len;
        let payload = bytes.get(outer.header_len..packet_len)?;
        let mut new = Self {
            bytes: [0; MAX],
            len: 0,
            old_len: outer.header_len,
            packet_len,
        };
        if outer.protocol == ipv4::ICMP {
            new.add_message(&outer, payload, to)?;
        } else {
            let length = u16::try_from(outer.payload_len).ok()?;
            new.len = outer.emit(to, length, &mut new.bytes);
        }
        Some(new)
    }

    /// An ICMP message: an error quotes a packet, whose header becomes another, too.
    fn add_message(&mut self, outer: &Common, payload: &[u8], to: Version) -> Option<()> {
        let message = head(payload)?;
        let (message, is_error) = match to {
            Version::Six => (message_to_six(&message)?, icmp::is_error(message.kind)),
            Version::Four => (message_to_four(&message)?, message.kind < 128),
        };
        let quoted = payload.get(icmp::HEADER..).filter(|_| is_error);
        let inner = match quoted {
            Some(bytes) => Some((Common::of(bytes, to)?, bytes.len())),
            None => None,
        };
        let (old_inner, available) = inner.as_ref().map_or((0, 0), |(c, n)| (c.header_len, *n));
        if available < old_inner {
            return None;
        }
        let mut end = to.header_len() + icmp::HEADER;
        if let Some((inner, _)) = &inner {
            let length = u16::try_from(inner.payload_len).ok()?;
            end += inner.emit(to, length, &mut self.bytes[end..]);
        }
        let rest = outer.payload_len - icmp::HEADER - old_inner;
        let length = u16::try_from(end - to.header_len() + rest).ok()?;
        outer.emit(to, length, &mut self.bytes);
        message.emit(&mut self.bytes[to.header_len()..]);
        self.len = end;
        self.old_len += icmp::HEADER + old_inner;
        Some(())
    }
}

/// The first eight bytes of a message; those of ICMP and ICMPv6 are alike.
fn head(payload: &[u8]) -> Option<icmp::Repr> {
    let [kind, code, _, _, rest @ ..] = *payload.first_chunk::<{ icmp::HEADER }>()?;
    message(kind, code, u32::from_be_bytes(rest))
}

/// Where in an IPv4 header, and where in an IPv6 header, the same field is.
const FIELDS: [(u8, u8); 6] = [(0, 0), (2, 4), (8, 7), (9, 6), (12, 8), (16, 24)];
/// By how much an IPv6 header is longer.
const GROWTH: u32 = 20;
/// The least a link must carry of IPv6.
const MIN_MTU: u32 = 1280;

fn message(kind: u8, code: u8, rest: u32) -> Option<icmp::Repr> {
    Some(icmp::Repr { kind, code, rest })
}

/// The ICMPv6 message for an ICMP message.
fn message_to_six(m: &icmp::Repr) -> Option<icmp::Repr> {
    match (m.kind, m.code) {
        (8, 0) => message(128, 0, m.rest),
        (0, 0) => message(129, 0, m.rest),
        (3, 2) => message(4, 1, super::NEXT_HEADER_AT as u32),
        (3, 4) => message(2, 0, (m.rest & 0xffff).saturating_add(GROWTH).max(MIN_MTU)),
        (3, 3) => message(1, 4, 0),
        (3, 5) => message(1, 2, 0),
        (3, 9 | 10 | 13) => message(1, 1, 0),
        (3, 0..=12) => message(1, 0, 0),
        (11, code) => message(3, code, 0),
        (12, 0) => {
            let [at, ..] = m.rest.to_be_bytes();
            let (_, at) = FIELDS.iter().find(|(four, _)| *four == at)?;
            message(4, 0, (*at).into())
        }
        _ => None,
    }
}

/// The ICMP message for an ICMPv6 message.
fn message_to_four(m: &icmp::Repr) -> Option<icmp::Repr> {
    match (m.kind, m.code) {
        (128, 0) => message(8, 0, m.rest),
        (129, 0) => message(0, 0, m.rest),
        (1, 0) => message(3, 0, 0),
        (1, 1) => message(3, 10, 0),
        (1, 2) => message(3, 5, 0),
        (1, 3) => message(3, 1, 0),
        (1, 4) => message(3, 3, 0),
        (2, _) => message(3, 4, m.rest.saturating_sub(GROWTH).min(0xffff)),
        (3, code) => message(11, code, 0),
        (4, 0) => {
            let (at, _) = FIELDS.iter().find(|(_, six)| u32::from(*six) == m.rest)?;
            message(12, 0, u32::from(*at) << 24)
        }
        (4, 1) => message(3, 2, 0),
        _ => None,
    }
}

/// Computes the checksum after a new header; false if there is no room for it.
fn fill_transport_checksum(bytes: &mut [u8], version: Version) -> bool {
    let protocol = match version {
        Version::Four => bytes[9],
        Version::Six => bytes[super::NEXT_HEADER_AT],
    };
    let at = match protocol {
        ipv4::ICMP | ICMP6 => 2,
        ipv4::TCP => 16,
        ipv4::UDP => 6,
        _ => return true,
    };
    let fits = bytes.len() >= version.header_len() + at + 2;
    match version {
        Version::Six if fits => fill_checksum(bytes, at),
        Version::Four if fits => fill_checksum4(bytes, protocol, at),
        _ => {}
    }
    fits
}

fn fill_checksum4(bytes: &mut [u8], protocol: u8, at: usize) {
    let (header, payload) = bytes.split_at_mut(ipv4::HEADER);
    payload[at..at + 2].fill(0);
    let header = Header4::new_unchecked(header);
    let pseudo = match protocol {
        ipv4::ICMP => 0,
        _ => {
            let length = u16::try_from(payload.len()).unwrap_or(u16::MAX);
            checksum::pseudo(header.source(), header.destination(), protocol, length)
        }
    };
    let sum = match checksum::finish(checksum::add(pseudo, payload)) {
        0 if protocol == ipv4::UDP => 0xffff,
        sum => sum,
    };
    payload[at..at + 2].copy_from_slice(&sum.to_be_bytes());
}

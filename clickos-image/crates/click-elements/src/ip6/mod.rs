// SPDX-License-Identifier: Apache-2.0
//! IPv6 (RFC 8200): addresses, prefixes, headers; [`neighbor`] is neighbor discovery, [`naming`] gives packets other
//! addresses, of which [`bindings`] are kept, [`translate`] is what becomes of packets between the two versions, [`table`]
//! routes.
pub mod bindings;
pub mod naming;
pub mod neighbor;
pub mod table;
pub mod translate;

use core::net::Ipv6Addr;

use click_core::ArgContext;
use click_core::text::unquote;
use click_wire::checksum;

use crate::prelude::*;

pub const ETHERTYPE: u16 = 0x86dd;
/// Bytes of a header without extensions.
pub const HEADER: usize = 40;
pub const ICMP6: u8 = 58;
/// No router has passed a packet with this.
pub const HOP_LIMIT: u8 = 255;

/// An address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Address(pub Ipv6Addr);

impl FromArg for Address {
    fn from_arg(text: &str, _: ArgContext<'_>) -> Result<Self, String> {
        let expected = |_| format!("expected an IPv6 address, got \"{}\"", text.shown());
        text.parse().map(Self).map_err(expected)
    }
}

impl core::fmt::Display for Address {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self.0.segments() {
            [0, 0, 0, 0, 0, 0, 0, 0] => f.write_str("::"),
            // as Click does, also where there is no IPv4 address in it
            [0, 0, 0, 0, 0, 0, _, _] => write!(f, "::{}", self.low()),
            _ => self.0.fmt(f),
        }
    }
}

impl Address {
    /// The destination annotation.
    pub fn of(packet: &Packet) -> Self {
        Self(Ipv6Addr::from(packet.anno().dst_ip6()))
    }

    /// Sets the destination annotation.
    pub fn put(self, packet: &mut Packet) {
        packet.anno_mut().set_dst_ip6(self.0.octets());
    }

    /// The last 32 bits, as an IPv4 address.
    fn low(self) -> Ipv4Addr {
        let [.., a, b, c, d] = self.0.octets();
        Ipv4Addr::new(a, b, c, d)
    }

    /// An IPv4 address as `::ffff:1.2.3.4`.
    pub fn of_ip4(address: Ipv4Addr) -> Self {
        Self(address.to_ipv6_mapped())
    }

    /// The IPv4 address in `::ffff:1.2.3.4` or `::1.2.3.4`, unless it is 0.
    pub fn ip4(self) -> Option<Ipv4Addr> {
        let embeds = matches!(self.0.segments(), [0, 0, 0, 0, 0, 0 | 0xffff, _, _]);
        Some(self.low()).filter(|low| embeds && !low.is_unspecified())
    }

    /// The address that bytes begin with.
    pub fn at(bytes: &[u8]) -> Option<Self> {
        let octets = bytes.first_chunk::<16>()?;
        Some(Self(Ipv6Addr::from(*octets)))
    }
}

/// An address and how many of its bits count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix6 {
    pub network: u128,
    pub length: u8,
}

impl core::fmt::Display for Prefix6 {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}/{}", Address(self.network.into()), self.length)
    }
}

impl FromArg for Prefix6 {
    fn from_arg(text: &str, at: ArgContext<'_>) -> Result<Self, String> {
        let (address, length) = text.split_once('/').unwrap_or((text, "128"));
        let length = length.parse().ok().filter(|l| *l <= 128);
        let expected = || format!("expected an IPv6 prefix, got \"{}\"", text.shown());
        let length = length.ok_or_else(expected)?;
        let Address(address) = Address::from_arg(address, at)?;
        let network = u128::from(address) & mask(length);
        Ok(Self { network, length })
    }
}

/// The mask of a prefix length.
pub fn mask(length: u8) -> u128 {
    u128::MAX.checked_shl(128 - u32::from(length)).unwrap_or(0)
}

impl Prefix6 {
    pub fn contains(&self, address: Address) -> bool {
        u128::from(address.0) & mask(self.length) == self.network
    }
}

/// Where packets that get a header go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destination {
    Fixed(Address),
    /// To the destination annotation.
    Annotation,
}

impl FromArg for Destination {
    fn from_arg(text: &str, at: ArgContext<'_>) -> Result<Self, String> {
        match unquote(text).as_str() {
            "DST_ANNO" => Ok(Self::Annotation),
            _ => Address::from_arg(text, at).map(Self::Fixed),
        }
    }
}

impl Destination {
    /// The address for `packet`.
    pub fn of(self, packet: &Packet) -> Address {
        match self {
            Self::Fixed(address) => address,
            Self::Annotation => Address::of(packet),
        }
    }
}

impl core::fmt::Display for Destination {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Fixed(address) => address.fmt(f),
            Self::Annotation => f.write_str("DST_ANNO"),
        }
    }
}

/// Looks at a header, whose fields may lie.
#[derive(Clone, Copy)]
pub struct View<'a>(&'a [u8; HEADER]);

impl<'a> View<'a> {
    /// The header that bytes begin with, if they are enough.
    pub fn of(bytes: &'a [u8]) -> Option<Self> {
        bytes.first_chunk().map(Self)
    }

    /// The marked header of a packet.
    pub fn marked(packet: &'a Packet) -> Option<Self> {
        Self::of(packet.network()?)
    }

    pub fn version(self) -> u8 {
        self.0[0] >> 4
    }

    pub fn traffic_class(self) -> u8 {
        self.0[0] << 4 | self.0[1] >> 4
    }

    pub fn payload_len(self) -> usize {
        usize::from(u16::from_be_bytes([self.0[4], self.0[5]]))
    }

    pub fn next_header(self) -> u8 {
        self.0[NEXT_HEADER_AT]
    }

    pub fn hop_limit(self) -> u8 {
        self.0[HOP_LIMIT_AT]
    }

    pub fn source(self) -> Address {
        Address::at(&self.0[8..]).expect("a header has two addresses")
    }

    pub fn destination(self) -> Address {
        Address::at(&self.0[24..]).expect("a header has two addresses")
    }
}

/// What is after the extension headers of a packet (RFC 8200, section 4).
pub struct Upper {
    /// Where its protocol's number is.
    pub named_at: usize,
    /// Where it begins.
    pub at: usize,
    /// Where the fragment header is.
    pub fragment_at: Option<usize>,
    /// It begins in another fragment, or is hidden by extension headers that are cut or too many.
    is_absent: bool,
}

/// Extension headers that are read at most.
const CHAIN: usize = 8;
const FRAGMENT: u8 = 44;
const AUTHENTICATION: u8 = 51;
const NOTHING: u8 = 59;

/// Hop-by-hop options, routing, fragment, authentication, destination options, mobility, HIP, Shim6.
pub const EXTENSIONS: [u8; 8] = [0, 43, FRAGMENT, AUTHENTICATION, 60, 135, 139, 140];

impl Upper {
    /// Reads the extension headers of a packet; none if it is shorter than its header.
    pub fn of(packet: &[u8]) -> Option<Self> {
        View::of(packet)?;
        let mut upper = Self {
            named_at: NEXT_HEADER_AT,
            at: HEADER,
            fragment_at: None,
            is_absent: false,
        };
        for _ in 0..CHAIN {
            if upper.skip(packet).is_none() || upper.is_absent {
                break;
            }
        }
        let protocol = packet[upper.named_at];
        upper.is_absent |= protocol == NOTHING || EXTENSIONS.contains(&protocol);
        Some(upper)
    }

    /// True if its first bytes are in this packet.
    pub fn is_whole(&self) -> bool {
        !self.is_absent
    }

    /// Continues after an extension header, if the next header is one and is there.
    fn skip(&mut self, packet: &[u8]) -> Option<()> {
        let protocol = packet[self.named_at];
        EXTENSIONS.contains(&protocol).then_some(())?;
        let units = usize::from(*packet.get(self.at + 1)?);
        let bytes = match protocol {
            FRAGMENT => 8,
            AUTHENTICATION => (units + 2) * 4,
            _ => (units + 1) * 8,
        };
        let header = packet.get(self.at..self.at + bytes)?;
        if protocol == FRAGMENT {
            // hosts do not agree on fragments of fragments
            let is_second = self.fragment_at.is_some();
            self.fragment_at.get_or_insert(self.at);
            self.is_absent = is_second || u16::from_be_bytes([header[2], header[3]]) >> 3 != 0;
        }
        self.named_at = self.at;
        self.at += bytes;
        Some(())
    }
}

pub const NEXT_HEADER_AT: usize = 6;
pub const HOP_LIMIT_AT: usize = 7;

/// The marked header of a packet, to change.
pub fn header_mut(packet: &mut Packet) -> Option<&mut [u8; HEADER]> {
    packet.network_mut()?.first_chunk_mut()
}

/// Writes the traffic class.
pub fn set_traffic_class(header: &mut [u8; HEADER], class: u8) {
    header[0] = header[0] & 0xf0 | class >> 4;
    header[1] = header[1] & 0x0f | class << 4;
}

/// The fields of a header.
pub struct Repr {
    pub traffic_class: u8,
    pub payload_len: u16,
    pub next_header: u8,
    pub hop_limit: u8,
    pub source: Address,
    pub destination: Address,
}

impl Repr {
    /// Writes the header to the start of `bytes`.
    pub fn emit(&self, bytes: &mut [u8]) {
        let class = self.traffic_class;
        bytes[..4].copy_from_slice(&[0x60 | class >> 4, class << 4, 0, 0]);
        bytes[4..6].copy_from_slice(&self.payload_len.to_be_bytes());
        bytes[NEXT_HEADER_AT] = self.next_header;
        bytes[HOP_LIMIT_AT] = self.hop_limit;
        bytes[8..24].copy_from_slice(&self.source.0.octets());
        bytes[24..HEADER].copy_from_slice(&self.destination.0.octets());
    }
}

/// Writes a header in front of `bytes[HEADER..]`, as a sender does.
pub fn emit(bytes: &mut [u8], next_header: u8, source: Address, destination: Address) {
    let header = Repr {
        traffic_class: 0,
        payload_len: u16::try_from(bytes.len() - HEADER).expect("checked by the caller"),
        next_header,
        hop_limit: HOP_LIMIT,
        source,
        destination,
    };
    header.emit(bytes);
}

/// The checksum of what follows the header in `bytes`, its own field included.
pub fn transport_checksum(bytes: &[u8]) -> u16 {
    let (header, payload) = bytes.split_at(HEADER);
    let addresses = checksum::add(0, &header[8..]);
    let rest = u64::from(header[NEXT_HEADER_AT]) + payload.len() as u64;
    checksum::finish(checksum::add(addresses + rest, payload))
}

/// Sets the checksum of the message after the header in `bytes`; it is at byte `at` of the message.
pub fn fill_checksum(bytes: &mut [u8], at: usize) {
    bytes[HEADER + at..HEADER + at + 2].fill(0);
    let sum = match transport_checksum(bytes) {
        // with UDP it would mean that there is none; for others it is the same number
        0 => 0xffff,
        sum => sum,
    };
    bytes[HEADER + at..HEADER + at + 2].copy_from_slice(&sum.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_shown_as_click_shows_them() {
        for text in ["::", "::0.0.0.1", "::ffff:1.2.3.4", "2001:db8::1", "fe80::"] {
            let address = Address(text.parse().unwrap());
            assert_eq!(address.to_string(), text);
        }
    }

    #[test]
    fn addresses_of_both_kinds_embed_another() {
        let ip4 = |text: &str| Address(text.parse().unwrap()).ip4();
        assert_eq!(ip4("::1.2.3.4"), Some(Ipv4Addr::new(1, 2, 3, 4)));
        assert_eq!(ip4("::ffff:1.2.3.4"), Some(Ipv4Addr::new(1, 2, 3, 4)));
        assert_eq!(ip4("::ffff:0:0"), None);
        assert_eq!(ip4("::fffe:1.2.3.4"), None);
    }

    #[test]
    fn the_traffic_class_lies_across_two_bytes() {
        let mut header = [0; HEADER];
        header[..2].copy_from_slice(&[0x60, 0x0f]);
        set_traffic_class(&mut header, 0xb8);
        assert_eq!(header[..2], [0x6b, 0x8f]);
        assert_eq!(View(&header).traffic_class(), 0xb8);
    }
}

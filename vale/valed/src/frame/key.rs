// SPDX-License-Identifier: Apache-2.0
//! The fields of a packet that rules and connections look at.
use std::hash::{Hash, Hasher};
use std::net::IpAddr;

use super::quote::{self, Quote};
use crate::frame::headers::{ARP, Ethernet, IPV4, IPV6, be16, octets};
use crate::frame::packet::{self, FragmentPart};

pub const TCP: u8 = 6;
pub const UDP: u8 = 17;
pub const ICMP: u8 = 1;
pub const ICMPV6: u8 = 58;
pub const DCCP: u8 = 33;
pub const SCTP: u8 = 132;

/// A frame as a filter sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FilterKey {
    /// ARP, which no rule concerns.
    Arp,
    Packet(FlowKey),
    /// Neither IP nor ARP, or not a valid packet.
    #[default]
    Other,
}

/// An IP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FlowKey {
    pub source: IpAddr,
    pub destination: IpAddr,
    pub protocol: u8,
    /// Source and destination port of a protocol that has them. The identifier of an ICMP echo, twice.
    pub ports: (u16, u16),
    /// The type of an ICMP message.
    pub icmp: u8,
    /// The code of an ICMP message.
    pub code: u8,
    /// The packet that an ICMP error is about, if the error's receiver has sent it.
    pub quote: Option<Quote>,
    /// A fragment without the ports.
    pub later: bool,
}

impl FilterKey {
    pub fn parse(ethernet: &Ethernet, frame: &[u8]) -> Self {
        let bytes = frame.get(ethernet.payload..).unwrap_or_default();
        let key = match ethernet.kind {
            ARP => return Self::Arp,
            IPV4 => v4(bytes),
            IPV6 => v6(bytes),
            _ => None,
        };
        key.map_or(Self::Other, Self::Packet)
    }

    /// The number of bytes at the frame's start on which the key depends. The packet that an ICMP error quotes
    /// may lie anywhere.
    pub fn inspected_len(&self, ethernet: &Ethernet, frame: &[u8]) -> usize {
        match self {
            Self::Packet(key) if key.is_error() => frame.len(),
            _ => packet::transport_end(ethernet, frame),
        }
    }
}

fn v4(bytes: &[u8]) -> Option<FlowKey> {
    let packet = packet::ipv4(bytes).ok()?;
    let address = |at| octets::<4>(bytes, at).map(IpAddr::from);
    key(address(12)?, address(16)?, &packet)
}

fn v6(bytes: &[u8]) -> Option<FlowKey> {
    let packet = packet::ipv6(bytes).ok()?;
    let address = |at| octets::<16>(bytes, at).map(IpAddr::from);
    key(address(8)?, address(24)?, &packet)
}

/// None if the packet is too short for its ports.
fn key(source: IpAddr, destination: IpAddr, packet: &packet::Packet<'_>) -> Option<FlowKey> {
    let later = packet.part == FragmentPart::Later;
    let is_icmp = !later && matches!(packet.protocol, ICMP | ICMPV6);
    let ports = match later {
        true => (0, 0),
        false => ports(packet.protocol, packet.body)?,
    };
    let [icmp, code] = match is_icmp {
        true => octets(packet.body, 0)?,
        false => [0; 2],
    };
    Some(FlowKey {
        source,
        destination,
        protocol: packet.protocol,
        ports,
        icmp,
        code,
        quote: quote::of(packet.protocol, icmp, packet.body, destination),
        later,
    })
}

/// The ports of a packet, or the identifier of an ICMP echo, twice. None if it is too short for them.
pub fn ports(protocol: u8, body: &[u8]) -> Option<(u16, u16)> {
    let word = |at| be16(body, at);
    match protocol {
        _ if vale_proto::has_ports(protocol) => word(0).zip(word(2)),
        ICMP | ICMPV6 if is_echo(protocol, *body.first()?) => word(4).map(|id| (id, id)),
        _ => Some((0, 0)),
    }
}

fn is_echo(protocol: u8, kind: u8) -> bool {
    match protocol {
        ICMP => matches!(kind, 0 | 8),
        _ => matches!(kind, 128 | 129),
    }
}

impl FlowKey {
    /// Neighbor discovery and DHCP, without which the guest has no address, pass every filter.
    /// Port security judges what they claim.
    pub fn is_basic(&self, from_guest: bool) -> bool {
        let (client, server) = match from_guest {
            true => self.ports,
            false => (self.ports.1, self.ports.0),
        };
        match (self.protocol, self.source) {
            _ if self.later => false,
            (UDP, IpAddr::V4(_)) => (client, server) == (68, 67),
            (UDP, IpAddr::V6(_)) => (client, server) == (546, 547),
            (ICMPV6, IpAddr::V6(_)) => matches!(self.icmp, 130..=136 | 143),
            _ => false,
        }
    }

    /// True for an ICMP error, which begins no connection.
    pub fn is_error(&self) -> bool {
        !self.later && quote::is_error(self.protocol, self.icmp, self.destination)
    }

    /// The same for both directions of a connection. An ICMP error has that of the packet that it is
    /// about.
    pub fn connection(&self) -> Connection {
        match self.quote {
            Some(quote) => Connection::new(
                (self.destination, quote.ports.0),
                (quote.destination, quote.ports.1),
                quote.protocol,
            ),
            None => Connection::new(
                (self.source, self.ports.0),
                (self.destination, self.ports.1),
                self.protocol,
            ),
        }
    }

    /// The number that rules compare to their ports: for ICMP the type before the code.
    pub fn number(&self) -> u16 {
        match self.protocol {
            ICMP | ICMPV6 => u16::from_be_bytes([self.icmp, self.code]),
            _ => self.ports.1,
        }
    }
}

/// The two ends of a connection, in the order of their addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connection {
    low: (u128, u16),
    high: (u128, u16),
    protocol: u8,
    is_v6: bool,
}

impl Connection {
    fn new(one: (IpAddr, u16), other: (IpAddr, u16), protocol: u8) -> Self {
        let end = |(address, port)| (number(address), port);
        let (is_v6, one, other) = (one.0.is_ipv6(), end(one), end(other));
        Self {
            low: one.min(other),
            high: one.max(other),
            protocol,
            is_v6,
        }
    }
}

impl Hash for Connection {
    /// Few words for a fast hash. The comparison looks at all fields.
    fn hash<H: Hasher>(&self, state: &mut H) {
        let halves = |n: u128| [n as u64, (n >> 64) as u64];
        let [low, low_net] = halves(self.low.0);
        let [high, high_net] = halves(self.high.0);
        let rest = [self.low.1, self.high.1, self.protocol.into()];
        let rest = rest.iter().fold(0, |word, n| word << 16 | u64::from(*n));
        for word in [low, high, rest] {
            state.write_u64(word);
        }
        if self.is_v6 {
            state.write_u64(low_net);
            state.write_u64(high_net);
        }
    }
}

/// An address as a number, which compares faster.
fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u32::from(address).into(),
        IpAddr::V6(address) => address.into(),
    }
}

// SPDX-License-Identifier: Apache-2.0
//! The fields of a packet that rules and connections look at.
use std::hash::{Hash, Hasher};
use std::net::IpAddr;

use crate::headers::{ARP, Ethernet, IPV4, IPV6, be16, octets};
use crate::packet::{self, FragmentPart};

pub const TCP: u8 = 6;
pub const UDP: u8 = 17;
pub const ICMP: u8 = 1;
pub const ICMPV6: u8 = 58;

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
    /// Source and destination port of TCP and UDP. The identifier of an ICMP echo, twice.
    pub ports: (u16, u16),
    /// The type of an ICMP message.
    pub icmp: u8,
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
    let word = |at| be16(packet.body, at);
    let (ports, icmp) = match packet.protocol {
        _ if later => ((0, 0), 0),
        TCP | UDP => ((word(0)?, word(2)?), 0),
        ICMP | ICMPV6 => {
            let kind = *packet.body.first()?;
            match is_echo(packet.protocol, kind) {
                true => ((word(4)?, word(4)?), kind),
                false => ((0, 0), kind),
            }
        }
        _ => ((0, 0), 0),
    };
    Some(FlowKey {
        source,
        destination,
        protocol: packet.protocol,
        ports,
        icmp,
        later,
    })
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

    /// The same for both directions of a connection.
    pub fn connection(&self) -> Connection {
        let one = (number(self.source), self.ports.0);
        let other = (number(self.destination), self.ports.1);
        Connection {
            low: one.min(other),
            high: one.max(other),
            protocol: self.protocol,
            is_v6: self.source.is_ipv6(),
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

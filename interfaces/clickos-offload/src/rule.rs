// SPDX-License-Identifier: Apache-2.0
//! A rule and the packets that it matches.
use crate::address::Address;
use crate::redirect::Targets;
use crate::view::{Header, View};

/// The verdict of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// The guest decides.
    Pass,
    Drop,
    /// The packet goes to another station of the guest's segment, one of several by its flow.
    Redirect(Targets),
}

/// Decides the packets that match all fields; a missing field matches any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    pub action: Action,
    pub ether_destination: Option<[u8; 6]>,
    pub ether_source: Option<[u8; 6]>,
    pub ether_type: Option<u16>,
    /// The packet has to be a valid IPv4 packet with these fields.
    pub ip: Option<IpPattern>,
    /// The packet has to be a valid IPv6 packet with these fields. No rule has both.
    pub ip6: Option<Ip6Pattern>,
}

/// Values from `first` to `last`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range<T> {
    pub first: T,
    pub last: T,
}

impl<T: PartialOrd + Copy> Range<T> {
    fn has(&self, value: T) -> bool {
        self.first <= value && value <= self.last
    }
}

/// The fields of a packet; A is its kind of address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pattern<A> {
    pub source: Range<A>,
    pub destination: Range<A>,
    pub protocol: Range<u8>,
    /// The traffic class, if it is IPv6.
    pub tos: Range<u8>,
    /// A packet without ports, such as a later fragment, does not match.
    pub source_port: Option<Range<u16>>,
    pub destination_port: Option<Range<u16>>,
}

/// The fields of an IPv4 packet.
pub type IpPattern = Pattern<u32>;
/// The fields of an IPv6 packet.
pub type Ip6Pattern = Pattern<u128>;

/// All values of a byte.
const ANY_BYTE: Range<u8> = Range {
    first: 0,
    last: u8::MAX,
};

impl<A: Address> Pattern<A> {
    /// All addresses.
    const ALL: Range<A> = Range {
        first: A::FIRST,
        last: A::LAST,
    };
    /// Matches each valid packet.
    pub const ANY: Self = Self {
        source: Self::ALL,
        destination: Self::ALL,
        protocol: ANY_BYTE,
        tos: ANY_BYTE,
        source_port: None,
        destination_port: None,
    };

    fn matches(&self, ip: &Header<A>) -> bool {
        let port = |wanted: Option<Range<u16>>, found: Option<u16>| {
            wanted.is_none_or(|range| found.is_some_and(|port| range.has(port)))
        };
        self.source.has(ip.source)
            && self.destination.has(ip.destination)
            && self.protocol.has(ip.protocol)
            && self.tos.has(ip.tos)
            && port(self.source_port, ip.source_port)
            && port(self.destination_port, ip.destination_port)
    }
}

/// True if there is no pattern, or the packet has a header that it matches.
fn fits<A: Address>(pattern: Option<&Pattern<A>>, header: Option<&Header<A>>) -> bool {
    pattern.is_none_or(|pattern| header.is_some_and(|header| pattern.matches(header)))
}

impl Rule {
    /// A rule for all packets.
    #[must_use]
    pub fn new(action: Action) -> Self {
        Self {
            action,
            ether_destination: None,
            ether_source: None,
            ether_type: None,
            ip: None,
            ip6: None,
        }
    }

    /// True if the rule decides the packet.
    #[must_use]
    pub fn matches(&self, view: &View) -> bool {
        fits(self.ip.as_ref(), view.ip.as_ref())
            && fits(self.ip6.as_ref(), view.ip6.as_ref())
            && self.ether_type.is_none_or(|t| t == view.ether_type)
            && self.ether_source.is_none_or(|a| a == view.ether_source)
            && self
                .ether_destination
                .is_none_or(|a| a == view.ether_destination)
    }
}

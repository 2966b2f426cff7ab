// SPDX-License-Identifier: Apache-2.0
//! A rule and the packets that it matches.
use crate::redirect::Target;
use crate::view::{Ip, View};

/// The verdict of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// The guest decides.
    Pass,
    Drop,
    /// The packet goes to another station of the guest's segment.
    Redirect(Target),
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

/// The fields of an IPv4 packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IpPattern {
    pub source: Range<u32>,
    pub destination: Range<u32>,
    pub protocol: Range<u8>,
    pub tos: Range<u8>,
    /// A packet without ports, such as a later fragment, does not match.
    pub source_port: Option<Range<u16>>,
    pub destination_port: Option<Range<u16>>,
}

impl IpPattern {
    /// Matches each valid packet.
    pub const ANY: Self = Self {
        source: Range {
            first: 0,
            last: u32::MAX,
        },
        destination: Range {
            first: 0,
            last: u32::MAX,
        },
        protocol: Range {
            first: 0,
            last: u8::MAX,
        },
        tos: Range {
            first: 0,
            last: u8::MAX,
        },
        source_port: None,
        destination_port: None,
    };

    fn matches(&self, ip: &Ip) -> bool {
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
        }
    }

    /// True if the rule decides the packet.
    #[must_use]
    pub fn matches(&self, view: &View) -> bool {
        let ip = |pattern: IpPattern| view.ip.is_some_and(|ip| pattern.matches(&ip));
        self.ip.is_none_or(ip)
            && self.ether_type.is_none_or(|t| t == view.ether_type)
            && self.ether_source.is_none_or(|a| a == view.ether_source)
            && self
                .ether_destination
                .is_none_or(|a| a == view.ether_destination)
    }
}

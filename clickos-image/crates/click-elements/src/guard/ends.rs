// SPDX-License-Identifier: Apache-2.0
//! The key of a flow of either version.
use core::fmt;
use core::net::{IpAddr, Ipv6Addr};

/// Addresses, ports and protocol of a flow in one direction. An address of IPv4 is one that is mapped into IPv6; the
/// identifier of a ping is both of its ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ends {
    pub source: u128,
    pub destination: u128,
    pub sport: u16,
    pub dport: u16,
    pub protocol: u8,
}

/// In front of the 32 bits of an address of IPv4.
const MAPPED: u128 = 0xffff << 32;

/// The number of an address.
pub fn mapped(address: u32) -> u128 {
    MAPPED | u128::from(address)
}

/// The address of a number.
pub fn address(number: u128) -> IpAddr {
    let address = Ipv6Addr::from(number);
    address
        .to_ipv4_mapped()
        .map_or(IpAddr::V6(address), IpAddr::V4)
}

/// The number of an address as text.
pub fn number(text: &str) -> Option<u128> {
    Some(match text.parse().ok()? {
        IpAddr::V4(four) => mapped(four.into()),
        IpAddr::V6(six) => six.into(),
    })
}

impl Ends {
    /// The same flow as its answers see it.
    #[must_use]
    pub fn reverse(self) -> Self {
        Self {
            source: self.destination,
            destination: self.source,
            sport: self.dport,
            dport: self.sport,
            protocol: self.protocol,
        }
    }

    /// A hash: who does not know the keys cannot choose flows that share a place.
    #[inline]
    pub fn hash(&self, keys: &[u64; 4]) -> u64 {
        let fold = |a: u64, b: u64| {
            let product = u128::from(a) * u128::from(b);
            (product as u64) ^ (product >> 64) as u64
        };
        let halves = |n: u128| ((n >> 64) as u64, n as u64);
        let [a, b, c, d] = *keys;
        let ((s, source), (t, target)) = (halves(self.source), halves(self.destination));
        let rest =
            u64::from(self.sport) << 32 | u64::from(self.dport) << 16 | u64::from(self.protocol);
        let outer = fold(s ^ a, source ^ b);
        let inner = fold(t ^ b.rotate_left(32), target ^ c);
        fold(fold(outer ^ rest, inner ^ c) ^ a, d | 1)
    }
}

impl fmt::Display for Ends {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (source, destination) = (address(self.source), address(self.destination));
        let (protocol, sport, dport) = (self.protocol, self.sport, self.dport);
        write!(f, "{protocol} {source} {sport} {destination} {dport}")
    }
}

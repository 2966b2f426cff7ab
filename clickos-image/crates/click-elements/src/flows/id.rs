// SPDX-License-Identifier: Apache-2.0
//! The key of a flow.
use core::fmt;
use core::net::Ipv4Addr;

/// Addresses and ports of a flow in one direction; fields that do not count are zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowId {
    pub source: Ipv4Addr,
    pub destination: Ipv4Addr,
    pub sport: u16,
    pub dport: u16,
}

impl FlowId {
    /// All zero.
    pub const NONE: Self = Self {
        source: Ipv4Addr::UNSPECIFIED,
        destination: Ipv4Addr::UNSPECIFIED,
        sport: 0,
        dport: 0,
    };

    /// The same flow as its answers see it.
    pub fn reverse(self) -> Self {
        Self {
            source: self.destination,
            destination: self.source,
            sport: self.dport,
            dport: self.sport,
        }
    }

    /// Both addresses.
    pub fn addresses(&self) -> u64 {
        u64::from(u32::from(self.source)) << 32 | u64::from(u32::from(self.destination))
    }

    /// Both ports.
    pub fn ports(&self) -> u32 {
        u32::from(self.sport) << 16 | u32::from(self.dport)
    }
}

impl fmt::Display for FlowId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            source,
            destination,
            sport,
            dport,
        } = self;
        write!(f, "({source}, {sport}, {destination}, {dport})")
    }
}

// SPDX-License-Identifier: Apache-2.0
//! ARP for IPv4 over Ethernet (RFC 826).
use core::net::Ipv4Addr;

use crate::field::{array_at, put, u16_at};
use crate::{Error, at_least, ether};

/// Bytes of a packet after the Ethernet header.
pub const LENGTH: usize = 28;
/// Operation: who has this address?
pub const REQUEST: u16 = 1;
/// Operation: I have it.
pub const REPLY: u16 = 2;

/// An ARP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr {
    /// Request, reply or another.
    pub operation: u16,
    /// Sender's hardware address.
    pub sender_mac: [u8; 6],
    /// Sender's address.
    pub sender_ip: Ipv4Addr,
    /// Target's hardware address.
    pub target_mac: [u8; 6],
    /// Target's address.
    pub target_ip: Ipv4Addr,
}

impl Repr {
    /// Reads the bytes after an Ethernet header.
    ///
    /// # Errors
    /// Too short, or not IPv4 over Ethernet.
    #[inline]
    pub fn parse(b: &[u8]) -> Result<Self, Error> {
        at_least(b, LENGTH)?;
        let ipv4_over_ethernet =
            u16_at(b, 0) == 1 && u16_at(b, 2) == ether::IPV4 && b[4] == 6 && b[5] == 4;
        if !ipv4_over_ethernet {
            return Err(Error::BadVersion);
        }
        Ok(Self {
            operation: u16_at(b, 6),
            sender_mac: array_at(b, 8),
            sender_ip: array_at::<4>(b, 14).into(),
            target_mac: array_at(b, 18),
            target_ip: array_at::<4>(b, 24).into(),
        })
    }

    /// Writes the packet; `b` must have room for it.
    #[inline]
    pub fn emit(&self, b: &mut [u8]) {
        put(b, 0, &[0, 1, 8, 0, 6, 4]);
        put(b, 6, &self.operation.to_be_bytes());
        put(b, 8, &self.sender_mac);
        put(b, 14, &self.sender_ip.octets());
        put(b, 18, &self.target_mac);
        put(b, 24, &self.target_ip.octets());
    }

    /// Writes a whole frame of 42 bytes.
    #[inline]
    pub fn emit_frame(&self, source: [u8; 6], destination: [u8; 6], frame: &mut [u8]) {
        ether::Repr {
            destination,
            source,
            ethertype: ether::ARP,
        }
        .emit(frame);
        self.emit(&mut frame[ether::HEADER..]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parse_and_emit() {
        let repr = Repr {
            operation: REQUEST,
            sender_mac: [1; 6],
            sender_ip: Ipv4Addr::new(10, 0, 0, 1),
            target_mac: [0; 6],
            target_ip: Ipv4Addr::new(10, 0, 0, 2),
        };
        let mut bytes = [0; LENGTH];
        repr.emit(&mut bytes);
        assert_eq!(Repr::parse(&bytes), Ok(repr));
        assert!(Repr::parse(&bytes[..27]).is_err());
        bytes[4] = 8;
        assert_eq!(Repr::parse(&bytes), Err(Error::BadVersion));
    }
}

// SPDX-License-Identifier: Apache-2.0
//! UDP headers (RFC 768).
use core::net::Ipv4Addr;

use crate::field::{put, u16_at};
use crate::{Error, at_least, checksum, ipv4};

/// Bytes of the header.
pub const HEADER: usize = 8;

/// A header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr {
    /// Sender's port.
    pub source: u16,
    /// Receiver's port.
    pub destination: u16,
}

impl Repr {
    /// Reads a datagram; a checksum of 0 means that there is none.
    ///
    /// # Errors
    /// Too short, a length that is not the datagram's, a wrong checksum.
    #[inline]
    pub fn parse(datagram: &[u8], from: Ipv4Addr, to: Ipv4Addr) -> Result<Self, Error> {
        at_least(datagram, HEADER)?;
        let length = u16_at(datagram, 4);
        if usize::from(length) < HEADER {
            return Err(Error::BadLength);
        }
        at_least(datagram, length.into())?;
        let datagram = &datagram[..length.into()];
        let sum = checksum::add(checksum::pseudo(from, to, ipv4::UDP, length), datagram);
        if u16_at(datagram, 6) != 0 && checksum::finish(sum) != 0 {
            return Err(Error::BadChecksum);
        }
        Ok(Self {
            source: u16_at(datagram, 0),
            destination: u16_at(datagram, 2),
        })
    }

    /// Writes the header of `datagram`, whose payload is in place; at most 65,535 bytes.
    #[inline]
    pub fn emit(&self, datagram: &mut [u8], from: Ipv4Addr, to: Ipv4Addr) {
        let length = u16::try_from(datagram.len()).unwrap_or(u16::MAX);
        let (header, payload) = datagram.split_at_mut(HEADER);
        // of the numbers, not of the bytes just written, for which the processor would have to wait
        let own = u64::from(self.source) + u64::from(self.destination) + u64::from(length);
        let pseudo = checksum::pseudo(from, to, ipv4::UDP, length);
        let sum = checksum::finish(checksum::add(pseudo + own, payload));
        // 0 would mean that there is no checksum
        let sum = if sum == 0 { 0xffff } else { sum };
        put(header, 0, &self.source.to_be_bytes());
        put(header, 2, &self.destination.to_be_bytes());
        put(header, 4, &length.to_be_bytes());
        put(header, 6, &sum.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parse_and_emit() {
        let (a, b) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
        let repr = Repr {
            source: 5353,
            destination: 53,
        };
        let mut datagram = [7; 13];
        repr.emit(&mut datagram, a, b);
        assert_eq!(Repr::parse(&datagram, a, b), Ok(repr));
        assert_eq!(Repr::parse(&datagram, a, a), Err(Error::BadChecksum));
        datagram[5] = 14;
        assert_eq!(
            Repr::parse(&datagram, a, b),
            Err(Error::Truncated { got: 13, need: 14 })
        );
        datagram[5] = 7;
        assert_eq!(Repr::parse(&datagram, a, b), Err(Error::BadLength));
    }
}

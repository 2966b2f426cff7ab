// SPDX-License-Identifier: Apache-2.0
//! TCP headers (RFC 9293).
use core::net::Ipv4Addr;

use crate::field::{put, u16_at, u32_at};
use crate::{Error, at_least, checksum, ipv4};

/// Bytes of a header without options.
pub const HEADER: usize = 20;
/// Flags by the names that Click's configuration language has for them.
pub const FLAGS: [(&str, u8); 8] = [
    ("fin", 1),
    ("syn", 2),
    ("rst", 4),
    ("psh", 8),
    ("ack", 16),
    ("urg", 32),
    ("ece", 64),
    ("cwr", 128),
];

/// A header without options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr {
    /// Sender's port.
    pub source: u16,
    /// Receiver's port.
    pub destination: u16,
    /// Sequence number.
    pub sequence: u32,
    /// Acknowledgement number.
    pub acknowledgement: u32,
    /// Flags.
    pub flags: u8,
    /// Window.
    pub window: u16,
}

impl Repr {
    /// Reads a segment; options are skipped.
    ///
    /// # Errors
    /// Too short, a header longer than the segment, a wrong checksum.
    #[inline]
    pub fn parse(segment: &[u8], from: Ipv4Addr, to: Ipv4Addr) -> Result<Self, Error> {
        let repr = Self::read(segment)?;
        let length = u16::try_from(segment.len()).map_err(|_| Error::BadLength)?;
        let sum = checksum::add(checksum::pseudo(from, to, ipv4::TCP, length), segment);
        if checksum::finish(sum) != 0 {
            return Err(Error::BadChecksum);
        }
        Ok(repr)
    }

    /// Reads a segment without its checksum; options are skipped.
    ///
    /// # Errors
    /// Too short, a header longer than the segment.
    #[inline]
    pub fn read(segment: &[u8]) -> Result<Self, Error> {
        at_least(segment, HEADER)?;
        let header = usize::from(segment[12] >> 4) * 4;
        if header < HEADER || header > segment.len() {
            return Err(Error::BadLength);
        }
        Ok(Self {
            source: u16_at(segment, 0),
            destination: u16_at(segment, 2),
            sequence: u32_at(segment, 4),
            acknowledgement: u32_at(segment, 8),
            flags: segment[13],
            window: u16_at(segment, 14),
        })
    }

    /// Writes the header of `segment`, whose payload is in place; at most 65,535 bytes.
    #[inline]
    pub fn emit(&self, segment: &mut [u8], from: Ipv4Addr, to: Ipv4Addr) {
        put(segment, 0, &self.source.to_be_bytes());
        put(segment, 2, &self.destination.to_be_bytes());
        put(segment, 4, &self.sequence.to_be_bytes());
        put(segment, 8, &self.acknowledgement.to_be_bytes());
        put(segment, 12, &[5 << 4, self.flags]);
        put(segment, 14, &self.window.to_be_bytes());
        put(segment, 16, &[0; 4]);
        let length = u16::try_from(segment.len()).unwrap_or(u16::MAX);
        let sum = checksum::finish(checksum::add(
            checksum::pseudo(from, to, ipv4::TCP, length),
            segment,
        ));
        put(segment, 16, &sum.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parse_and_emit() {
        let (a, b) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
        let repr = Repr {
            source: 1,
            destination: 80,
            sequence: 3,
            acknowledgement: 4,
            flags: 2,
            window: 512,
        };
        let mut segment = [9; 23];
        repr.emit(&mut segment, a, b);
        assert_eq!(Repr::parse(&segment, a, b), Ok(repr));
        segment[22] ^= 1;
        assert_eq!(Repr::parse(&segment, a, b), Err(Error::BadChecksum));
        segment[12] = 0x60;
        assert_eq!(Repr::parse(&segment, a, b), Err(Error::BadLength));
        assert!(Repr::parse(&segment[..19], a, b).is_err());
    }
}

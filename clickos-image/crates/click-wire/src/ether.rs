// SPDX-License-Identifier: Apache-2.0
//! Ethernet II headers.
use crate::field::{array_at, put, u16_at};
use crate::{Error, at_least};

/// Bytes of the header.
pub const HEADER: usize = 14;
/// EtherType of IPv4.
pub const IPV4: u16 = 0x0800;
/// EtherType of ARP.
pub const ARP: u16 = 0x0806;
/// The address of everyone.
pub const BROADCAST: [u8; 6] = [0xff; 6];

/// True if an address is that of a group (or of everyone).
#[inline]
pub fn is_group(address: [u8; 6]) -> bool {
    address[0] & 1 == 1
}

/// An Ethernet header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr {
    /// Receiver.
    pub destination: [u8; 6],
    /// Sender.
    pub source: [u8; 6],
    /// EtherType.
    pub ethertype: u16,
}

impl Repr {
    /// Reads the header of a frame.
    ///
    /// # Errors
    /// The frame is too short.
    #[inline]
    pub fn parse(frame: &[u8]) -> Result<Self, Error> {
        at_least(frame, HEADER)?;
        Ok(Self {
            destination: array_at(frame, 0),
            source: array_at(frame, 6),
            ethertype: u16_at(frame, 12),
        })
    }

    /// Writes the header; `frame` must have room for it.
    #[inline]
    pub fn emit(&self, frame: &mut [u8]) {
        put(frame, 0, &self.destination);
        put(frame, 6, &self.source);
        put(frame, 12, &self.ethertype.to_be_bytes());
    }

    /// The header by itself.
    #[inline]
    pub fn bytes(&self) -> [u8; HEADER] {
        let mut header = [0; HEADER];
        self.emit(&mut header);
        header
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parse_and_emit() {
        let repr = Repr {
            destination: [1, 2, 3, 4, 5, 6],
            source: [8; 6],
            ethertype: ARP,
        };
        let mut frame = [0; 20];
        repr.emit(&mut frame);
        assert_eq!(frame[..14], [1, 2, 3, 4, 5, 6, 8, 8, 8, 8, 8, 8, 8, 6]);
        assert_eq!(Repr::parse(&frame), Ok(repr));
        assert_eq!(
            Repr::parse(&frame[..13]),
            Err(Error::Truncated { got: 13, need: 14 })
        );
        assert!(is_group(BROADCAST) && !is_group(repr.source));
    }
}

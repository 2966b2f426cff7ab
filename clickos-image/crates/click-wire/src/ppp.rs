// SPDX-License-Identifier: Apache-2.0
//! Packets of PPP's control protocols and their options (RFC 1661, sections 5 and 6).
use crate::field::u16_at;
use crate::{Error, at_least};

/// Bytes of the protocol's number.
pub const PROTOCOL: usize = 2;
/// Bytes of a control packet's header.
pub const HEADER: usize = 4;

/// IPv4 packets.
pub const IPV4: u16 = 0x0021;
/// IPv6 packets.
pub const IPV6: u16 = 0x0057;
/// IP Control Protocol (RFC 1332).
pub const IPCP: u16 = 0x8021;
/// IPv6 Control Protocol (RFC 5072).
pub const IPV6CP: u16 = 0x8057;
/// Link Control Protocol.
pub const LCP: u16 = 0xc021;
/// Password Authentication Protocol (RFC 1334).
pub const PAP: u16 = 0xc023;
/// Challenge Handshake Authentication Protocol (RFC 1994).
pub const CHAP: u16 = 0xc223;

/// Codes of LCP; the first seven are also those of network control protocols.
pub mod code {
    pub const REQUEST: u8 = 1;
    pub const ACK: u8 = 2;
    pub const NAK: u8 = 3;
    pub const REJECT: u8 = 4;
    pub const TERMINATE: u8 = 5;
    pub const TERMINATE_ACK: u8 = 6;
    pub const CODE_REJECT: u8 = 7;
    pub const PROTOCOL_REJECT: u8 = 8;
    pub const ECHO: u8 = 9;
    pub const ECHO_REPLY: u8 = 10;
    pub const DISCARD: u8 = 11;
}

/// A control packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Control<'a> {
    /// Its kind.
    pub code: u8,
    /// Matches answers to requests.
    pub id: u8,
    /// The bytes after the header.
    pub data: &'a [u8],
}

impl<'a> Control<'a> {
    /// Reads a control packet; padding may follow it.
    ///
    /// # Errors
    /// Too short, or a length below that of the header.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Error> {
        at_least(bytes, HEADER)?;
        let length = usize::from(u16_at(bytes, 2));
        if length < HEADER {
            return Err(Error::BadLength);
        }
        at_least(bytes, length)?;
        Ok(Self {
            code: bytes[0],
            id: bytes[1],
            data: &bytes[HEADER..length],
        })
    }
}

/// An option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opt<'a> {
    /// Its kind.
    pub kind: u8,
    /// The bytes after its header.
    pub value: &'a [u8],
    /// The option with its header.
    pub whole: &'a [u8],
}

/// Options whose lengths are right.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a>(&'a [u8]);

impl<'a> Options<'a> {
    /// Checks all options of a control packet's data.
    ///
    /// # Errors
    /// An option is longer than the data, or shorter than its header.
    pub fn new(data: &'a [u8]) -> Result<Self, Error> {
        let mut rest = data;
        while !rest.is_empty() {
            at_least(rest, 2)?;
            let length = usize::from(rest[1]);
            if length < 2 {
                return Err(Error::BadLength);
            }
            at_least(rest, length)?;
            rest = &rest[length..];
        }
        Ok(Self(data))
    }
}

impl<'a> Iterator for Options<'a> {
    type Item = Opt<'a>;

    fn next(&mut self) -> Option<Opt<'a>> {
        let length = usize::from(*self.0.get(1)?);
        let whole = self.0.get(..length)?;
        self.0 = &self.0[length..];
        Some(Opt {
            kind: whole[0],
            value: &whole[2..],
            whole,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    #[test]
    fn control_packets_end_where_they_say() {
        let bytes = [1, 7, 0, 6, 8, 9, 0, 0];
        let control = Control {
            code: code::REQUEST,
            id: 7,
            data: &[8, 9],
        };
        assert_eq!(Control::parse(&bytes), Ok(control));
        assert_eq!(
            Control::parse(&bytes[..5]),
            Err(Error::Truncated { got: 5, need: 6 })
        );
        assert_eq!(Control::parse(&[1, 7, 0, 3]), Err(Error::BadLength));
        assert!(Control::parse(&[1, 7, 0]).is_err());
    }

    #[test]
    fn options_are_all_there_or_none() {
        let bytes = [1, 4, 5, 0xd4, 7, 2];
        let kinds: Vec<_> = Options::new(&bytes)
            .unwrap()
            .map(|o| (o.kind, o.value))
            .collect();
        assert_eq!(kinds, [(1, &[5, 0xd4][..]), (7, &[][..])]);
        for wrong in [&[1][..], &[1, 1], &[1, 0], &[1, 4, 5], &[7, 2, 1, 4, 0]] {
            assert!(Options::new(wrong).is_err(), "{wrong:?}");
        }
        assert!(Options::new(&[]).unwrap().next().is_none());
    }
}

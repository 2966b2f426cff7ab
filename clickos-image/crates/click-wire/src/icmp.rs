// SPDX-License-Identifier: Apache-2.0
//! ICMP headers (RFC 792).
use crate::field::{put, u32_at};
use crate::{Error, at_least, checksum};

/// Bytes of the header.
pub const HEADER: usize = 8;
/// Types by the names that Click's configuration language has for them.
pub const TYPES: [(&str, u8); 15] = [
    ("echo-reply", 0),
    ("unreachable", 3),
    ("sourcequench", 4),
    ("redirect", 5),
    ("echo", 8),
    ("routeradvert", 9),
    ("routersolicit", 10),
    ("timeexceeded", 11),
    ("parameterproblem", 12),
    ("timestamp", 13),
    ("timestamp-reply", 14),
    ("inforeq", 15),
    ("inforeq-reply", 16),
    ("maskreq", 17),
    ("maskreq-reply", 18),
];

/// Whether a message of this type reports an error; errors are never answered by errors (RFC 1122, 3.2.2).
pub fn is_error(kind: u8) -> bool {
    matches!(kind, 3 | 4 | 5 | 11 | 12)
}

/// A header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr {
    /// Type.
    pub kind: u8,
    /// Code.
    pub code: u8,
    /// What the type puts into the last four bytes.
    pub rest: u32,
}

impl Repr {
    /// Reads the header of a message and checks the checksum over all of it.
    ///
    /// # Errors
    /// Too short, or the checksum is wrong.
    pub fn parse(message: &[u8]) -> Result<Self, Error> {
        at_least(message, HEADER)?;
        if checksum::of(message) != 0 {
            return Err(Error::BadChecksum);
        }
        Ok(Self {
            kind: message[0],
            code: message[1],
            rest: u32_at(message, 4),
        })
    }

    /// Writes the header of `message`, whose payload is in place, with the checksum over all of it.
    pub fn emit(&self, message: &mut [u8]) {
        message[0] = self.kind;
        message[1] = self.code;
        put(message, 2, &[0, 0]);
        put(message, 4, &self.rest.to_be_bytes());
        let sum = checksum::of(message);
        put(message, 2, &sum.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parse_and_emit() {
        let repr = Repr {
            kind: 8,
            code: 0,
            rest: 0x1234_0001,
        };
        let mut message = [0, 0, 0, 0, 0, 0, 0, 0, b'x', b'y', b'z'];
        repr.emit(&mut message);
        assert_eq!(Repr::parse(&message), Ok(repr));
        message[9] ^= 1;
        assert_eq!(Repr::parse(&message), Err(Error::BadChecksum));
        assert!(Repr::parse(&message[..7]).is_err());
        assert!(is_error(11) && !is_error(8));
    }
}

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
/// Codes by the names that Click's configuration language has for them, with their types; the first name of a code
/// is the one that is printed.
pub const CODES: [(u8, &str, u8); 26] = [
    (3, "net", 0),
    (3, "host", 1),
    (3, "protocol", 2),
    (3, "port", 3),
    (3, "needfrag", 4),
    (3, "srcroutefail", 5),
    (3, "netunknown", 6),
    (3, "hostunknown", 7),
    (3, "isolated", 8),
    (3, "netprohibited", 9),
    (3, "hostprohibited", 10),
    (3, "tosnet", 11),
    (3, "toshost", 12),
    (3, "filterprohibited", 13),
    (3, "hostprecedence", 14),
    (3, "precedencecutoff", 15),
    (5, "net", 0),
    (5, "host", 1),
    (5, "tosnet", 2),
    (5, "toshost", 3),
    (11, "transit", 0),
    (11, "reassembly", 1),
    (12, "erroratptr", 0),
    (12, "missingopt", 1),
    (12, "length", 2),
    (12, "badlength", 2),
];

/// The name of a type.
#[inline]
pub fn type_name(kind: u8) -> Option<&'static str> {
    TYPES
        .iter()
        .find(|(_, k)| *k == kind)
        .map(|(name, _)| *name)
}

/// The name of a code of a type.
#[inline]
pub fn code_name(kind: u8, code: u8) -> Option<&'static str> {
    let of = |(k, _, c): &&(u8, &str, u8)| (*k, *c) == (kind, code);
    CODES.iter().find(of).map(|(_, name, _)| *name)
}

/// The code of a type that has this name.
#[inline]
pub fn code_named(kind: u8, name: &str) -> Option<u8> {
    let of = |(k, n, _): &&(u8, &str, u8)| (*k, *n) == (kind, name);
    CODES.iter().find(of).map(|(_, _, code)| *code)
}

/// True if a message of this type reports an error; errors are never answered by errors (RFC 1122, 3.2.2).
#[inline]
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
    #[inline]
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
    #[inline]
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
        assert_eq!((type_name(8), type_name(99)), (Some("echo"), None));
        assert_eq!(
            (code_named(11, "transit"), code_named(3, "transit")),
            (Some(0), None)
        );
        assert_eq!((code_name(12, 2), code_name(8, 1)), (Some("length"), None));
    }
}

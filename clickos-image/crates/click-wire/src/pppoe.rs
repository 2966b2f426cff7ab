// SPDX-License-Identifier: Apache-2.0
//! PPPoE headers and the tags of its discovery (RFC 2516).
use crate::field::{put, u16_at};
use crate::{Error, at_least};

/// Bytes of the header.
pub const HEADER: usize = 6;
/// Bytes in front of a tag's value.
pub const TAG_HEADER: usize = 4;
/// EtherType of discovery.
pub const DISCOVERY: u16 = 0x8863;
/// EtherType of sessions.
pub const SESSION: u16 = 0x8864;

/// Codes of the header.
pub mod code {
    /// A packet of a session.
    pub const SESSION: u8 = 0x00;
    /// Initiation: a host looks for concentrators.
    pub const PADI: u8 = 0x09;
    /// Offer: a concentrator answers.
    pub const PADO: u8 = 0x07;
    /// Request: a host wants a session.
    pub const PADR: u8 = 0x19;
    /// Session-confirmation: the host has one, or an error.
    pub const PADS: u8 = 0x65;
    /// Terminate: a session is over.
    pub const PADT: u8 = 0xa7;
}

/// Kinds of tags.
pub mod tag {
    /// No more tags follow.
    pub const END: u16 = 0x0000;
    /// The service; an empty name means any.
    pub const SERVICE_NAME: u16 = 0x0101;
    /// The concentrator's name.
    pub const AC_NAME: u16 = 0x0102;
    /// A host's own mark; answers repeat it.
    pub const HOST_UNIQ: u16 = 0x0103;
    /// A concentrator's mark; requests repeat it.
    pub const AC_COOKIE: u16 = 0x0104;
    /// A relay's mark; answers repeat it.
    pub const RELAY_SESSION: u16 = 0x0110;
    /// The service is not available.
    pub const SERVICE_NAME_ERROR: u16 = 0x0201;
    /// The concentrator cannot serve now.
    pub const AC_SYSTEM_ERROR: u16 = 0x0202;
}

/// A header of version 1 and type 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr {
    /// One of [`code`].
    pub code: u8,
    /// The session's number.
    pub session: u16,
    /// Bytes after the header.
    pub payload_len: u16,
}

impl Repr {
    /// Reads the header; padding may follow the payload.
    ///
    /// # Errors
    /// Too short for the header or for its payload, or another version.
    #[inline]
    pub fn parse(bytes: &[u8]) -> Result<Self, Error> {
        at_least(bytes, HEADER)?;
        if bytes[0] != 0x11 {
            return Err(Error::BadVersion);
        }
        let payload_len = u16_at(bytes, 4);
        at_least(bytes, HEADER + usize::from(payload_len))?;
        Ok(Self {
            code: bytes[1],
            session: u16_at(bytes, 2),
            payload_len,
        })
    }

    /// Writes the header; `bytes` must have room for it.
    #[inline]
    pub fn emit(&self, bytes: &mut [u8]) {
        put(bytes, 0, &[0x11, self.code]);
        put(bytes, 2, &self.session.to_be_bytes());
        put(bytes, 4, &self.payload_len.to_be_bytes());
    }
}

/// Tags whose lengths are right.
#[derive(Clone, Copy, Debug)]
pub struct Tags<'a>(&'a [u8]);

impl<'a> Tags<'a> {
    /// Checks all tags of a payload.
    ///
    /// # Errors
    /// A tag is longer than the payload.
    pub fn new(payload: &'a [u8]) -> Result<Self, Error> {
        let mut rest = payload;
        while let Some((_, _, behind)) = first(rest)? {
            rest = behind;
        }
        Ok(Self(payload))
    }

    /// The value of the first tag of a kind.
    #[must_use]
    pub fn value(mut self, kind: u16) -> Option<&'a [u8]> {
        self.find(|(found, _)| *found == kind)
            .map(|(_, value)| value)
    }
}

impl<'a> Iterator for Tags<'a> {
    type Item = (u16, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let (kind, value, rest) = first(self.0).ok()??;
        self.0 = rest;
        Some((kind, value))
    }
}

/// Kind and value of a tag, and what follows.
type Tag<'a> = (u16, &'a [u8], &'a [u8]);

/// The first tag, if there is one.
fn first(tags: &[u8]) -> Result<Option<Tag<'_>>, Error> {
    if tags.is_empty() {
        return Ok(None);
    }
    at_least(tags, TAG_HEADER)?;
    let kind = u16_at(tags, 0);
    if kind == tag::END {
        return Ok(None);
    }
    let (length, rest) = (usize::from(u16_at(tags, 2)), &tags[TAG_HEADER..]);
    at_least(rest, length)?;
    Ok(Some((kind, &rest[..length], &rest[length..])))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    #[test]
    fn headers_survive_and_lying_lengths_do_not() {
        let repr = Repr {
            code: code::PADS,
            session: 0x1234,
            payload_len: 2,
        };
        let mut bytes = [0xff; 9];
        repr.emit(&mut bytes);
        assert_eq!(bytes[..6], [0x11, 0x65, 0x12, 0x34, 0, 2]);
        assert_eq!(Repr::parse(&bytes), Ok(repr));
        assert_eq!(
            Repr::parse(&bytes[..7]),
            Err(Error::Truncated { got: 7, need: 8 })
        );
        assert_eq!(
            Repr::parse(&bytes[..5]),
            Err(Error::Truncated { got: 5, need: 6 })
        );
        bytes[0] = 0x12;
        assert_eq!(Repr::parse(&bytes), Err(Error::BadVersion));
    }

    #[test]
    fn tags_end_where_they_say() {
        let bytes = [1, 1, 0, 0, 1, 3, 0, 2, 7, 8, 0, 0, 0, 9, 9];
        let tags = Tags::new(&bytes).unwrap();
        let all: Vec<_> = tags.collect();
        assert_eq!(
            all,
            [(tag::SERVICE_NAME, &[][..]), (tag::HOST_UNIQ, &[7, 8][..])]
        );
        assert_eq!(tags.value(tag::HOST_UNIQ), Some(&[7, 8][..]));
        assert_eq!(tags.value(tag::AC_COOKIE), None);
        assert!(Tags::new(&[1, 1, 0, 1]).is_err());
        assert!(Tags::new(&[1, 1, 0]).is_err());
        assert!(Tags::new(&[]).unwrap().next().is_none());
    }
}

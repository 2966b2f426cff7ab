// SPDX-License-Identifier: Apache-2.0
//! The messages by which two routers keep a copy of each other's flows.
//!
//! A message is 48 bytes, a body of at most 1,200 and an authentication tag of 16: `CFC1`, four bytes of 0,
//! then in network order the sender's number of the connection, the receiver's (0 if it is not known), the
//! message's number, the last one that arrived, and that of the datagram, eight bytes each. A body is the name
//! of an element, a line feed, and a text for its handler `merge`. A message without a body only confirms. The
//! tag is BLAKE2s with the pair's key.
use crate::prelude::*;
use crate::wireguard::crypto;

const MAGIC: &[u8; 4] = b"CFC1";
const HEADER: usize = 48;
/// Bytes of the text that one message carries.
pub const MAX_BODY: usize = 1200;

/// The key of a pair.
pub type Key = crypto::Key;

/// A message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Message {
    pub from: u64,
    pub to: u64,
    pub number: u64,
    pub received: u64,
    /// Each datagram of an end has a higher one, also if it repeats a message.
    pub serial: u64,
    pub body: String,
}

impl Message {
    /// The bytes, with their tag.
    pub fn bytes(&self, key: &Key) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEADER + self.body.len() + crypto::MAC);
        bytes.extend(MAGIC);
        bytes.extend([0; 4]);
        let Self {
            from,
            to,
            number,
            received,
            serial,
            ..
        } = self;
        for number in [from, to, number, received, serial] {
            bytes.extend(number.to_be_bytes());
        }
        bytes.extend(self.body.as_bytes());
        let tag = crypto::mac(key, &[&bytes]);
        bytes.extend(tag);
        bytes
    }

    /// Reads a message of someone who has the key.
    pub fn parse(bytes: &[u8], key: &Key) -> Option<Self> {
        let signed = bytes.len().checked_sub(crypto::MAC)?;
        let (signed, tag) = bytes.split_at(signed);
        let is_sound = signed.len() >= HEADER
            && signed.len() <= HEADER + MAX_BODY
            && signed.starts_with(MAGIC)
            && crypto::same(&crypto::mac(key, &[signed]), tag);
        if !is_sound {
            return None;
        }
        let number = |n: usize| {
            let at = 8 + 8 * n;
            signed[at..]
                .first_chunk::<8>()
                .map(|b| u64::from_be_bytes(*b))
        };
        Some(Self {
            from: number(0)?,
            to: number(1)?,
            number: number(2)?,
            received: number(3)?,
            serial: number(4)?,
            body: core::str::from_utf8(&signed[HEADER..]).ok()?.to_string(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: Key = [7; 32];

    #[test]
    fn only_whoever_has_the_key_is_heard() {
        let message = Message {
            from: 1,
            to: 2,
            number: 3,
            received: 4,
            serial: 5,
            body: "flows\nline\n".to_string(),
        };
        let bytes = message.bytes(&KEY);
        assert_eq!(Message::parse(&bytes, &KEY), Some(message));
        assert_eq!(Message::parse(&bytes, &[8; 32]), None);
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            assert_eq!(Message::parse(&changed, &KEY), None, "byte {at}");
            assert_eq!(Message::parse(&bytes[..at], &KEY), None, "{at} bytes");
        }
    }
}

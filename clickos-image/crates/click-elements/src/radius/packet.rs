// SPDX-License-Identifier: Apache-2.0
//! RADIUS packets (RFC 2865, section 3), their attributes and sums.
use alloc::vec::Vec;

use hmac::{Hmac, Mac};
use md5::{Digest, Md5};

use crate::wireguard::crypto::same;

/// Bytes in front of the attributes.
pub const HEADER: usize = 20;
/// The longest packet.
pub const LONGEST: usize = 4096;
/// Bytes of an authenticator, and of each sum.
pub const SUM: usize = 16;
/// Bytes of an attribute's value.
pub const VALUE: usize = 253;
/// Bytes of a password (RFC 2865, section 5.2).
pub const PASSWORD: usize = 128;

/// Codes of packets.
pub mod code {
    pub const ACCESS_REQUEST: u8 = 1;
    pub const ACCESS_ACCEPT: u8 = 2;
    pub const ACCESS_REJECT: u8 = 3;
    pub const ACCOUNTING_REQUEST: u8 = 4;
    pub const ACCOUNTING_RESPONSE: u8 = 5;
    pub const ACCESS_CHALLENGE: u8 = 11;
}

/// Types of attributes.
pub mod attribute {
    pub const USER_NAME: u8 = 1;
    pub const USER_PASSWORD: u8 = 2;
    pub const CHAP_PASSWORD: u8 = 3;
    pub const NAS_IP_ADDRESS: u8 = 4;
    pub const NAS_PORT: u8 = 5;
    pub const SERVICE_TYPE: u8 = 6;
    pub const FRAMED_PROTOCOL: u8 = 7;
    pub const FRAMED_IP_ADDRESS: u8 = 8;
    pub const CLASS: u8 = 25;
    pub const VENDOR_SPECIFIC: u8 = 26;
    pub const SESSION_TIMEOUT: u8 = 27;
    pub const IDLE_TIMEOUT: u8 = 28;
    pub const CALLING_STATION_ID: u8 = 31;
    pub const NAS_IDENTIFIER: u8 = 32;
    pub const ACCT_STATUS_TYPE: u8 = 40;
    pub const ACCT_INPUT_OCTETS: u8 = 42;
    pub const ACCT_OUTPUT_OCTETS: u8 = 43;
    pub const ACCT_SESSION_ID: u8 = 44;
    pub const ACCT_AUTHENTIC: u8 = 45;
    pub const ACCT_SESSION_TIME: u8 = 46;
    pub const ACCT_INPUT_PACKETS: u8 = 47;
    pub const ACCT_OUTPUT_PACKETS: u8 = 48;
    pub const ACCT_TERMINATE_CAUSE: u8 = 49;
    pub const ACCT_INPUT_GIGAWORDS: u8 = 52;
    pub const ACCT_OUTPUT_GIGAWORDS: u8 = 53;
    pub const EVENT_TIMESTAMP: u8 = 55;
    pub const CHAP_CHALLENGE: u8 = 60;
    pub const NAS_PORT_TYPE: u8 = 61;
    pub const MESSAGE_AUTHENTICATOR: u8 = 80;
    pub const ACCT_INTERIM_INTERVAL: u8 = 85;
    pub const FRAMED_IPV6_PREFIX: u8 = 97;
}

/// The attributes of a request that is being made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attributes(pub Vec<u8>);

impl Attributes {
    /// Adds an attribute; bytes of a value beyond what fits are cut off.
    pub fn put(&mut self, kind: u8, value: &[u8]) {
        let value = &value[..value.len().min(VALUE)];
        let length = u8::try_from(value.len() + 2).unwrap_or(u8::MAX);
        self.0.extend([kind, length]);
        self.0.extend(value);
    }

    /// Adds an attribute with a number.
    pub fn number(&mut self, kind: u8, number: u32) {
        self.put(kind, &number.to_be_bytes());
    }
}

/// Attributes whose lengths are right.
#[derive(Clone, Copy, Debug)]
pub struct Values<'a>(&'a [u8]);

impl<'a> Values<'a> {
    /// Checks all attributes; `None` if a length is wrong.
    pub fn new(bytes: &'a [u8]) -> Option<Self> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let (_, _, behind) = first(rest)?;
            rest = behind;
        }
        Some(Self(bytes))
    }
}

impl<'a> Iterator for Values<'a> {
    type Item = (u8, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let (kind, value, rest) = first(self.0)?;
        self.0 = rest;
        Some((kind, value))
    }
}

/// Type and value of the first attribute, and what follows.
fn first(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let [kind, length, ..] = *bytes else {
        return None;
    };
    let (whole, rest) = bytes.split_at_checked(usize::from(length))?;
    Some((kind, whole.get(2..)?, rest))
}

/// An answer whose lengths are right.
#[derive(Clone, Copy, Debug)]
pub struct Answer<'a> {
    /// Its code.
    pub code: u8,
    /// The identifier of the request that it answers.
    pub id: u8,
    bytes: &'a [u8],
    /// Its attributes.
    pub values: Values<'a>,
}

impl<'a> Answer<'a> {
    /// Reads a packet; padding may follow it (RFC 2865, section 3).
    pub fn parse(datagram: &'a [u8]) -> Option<Self> {
        let [code, id, high, low, ..] = *datagram else {
            return None;
        };
        let length = usize::from(u16::from_be_bytes([high, low]));
        let right = (HEADER..=LONGEST).contains(&length);
        let bytes = datagram.get(..length).filter(|_| right)?;
        let values = Values::new(&bytes[HEADER..])?;
        Some(Self {
            code,
            id,
            bytes,
            values,
        })
    }

    /// True if a server with the secret made it for the request with this authenticator. An answer without
    /// Message-Authenticator is right only if it is not `signed`; a wrong or second one never is.
    pub fn is_right(&self, request: &[u8; SUM], secret: &[u8], signed: bool) -> bool {
        let (head, rest) = self.bytes.split_at(HEADER);
        let sum = md5(&[&head[..4], request, rest, secret]);
        same(&sum, &head[4..]) && self.signature(request, secret).unwrap_or(!signed)
    }

    /// Whether Message-Authenticator is right (RFC 3579, section 3.2), if there is one.
    fn signature(&self, request: &[u8; SUM], secret: &[u8]) -> Option<bool> {
        let (mut at, mut found) = (HEADER, None);
        for (kind, value) in self.values {
            if kind == attribute::MESSAGE_AUTHENTICATOR {
                let right = found.is_none() && value.len() == SUM;
                if !right {
                    return Some(false);
                }
                found = Some((at + 2, value));
            }
            at += value.len() + 2;
        }
        let (at, value) = found?;
        let parts = [
            &self.bytes[..4],
            request,
            &self.bytes[HEADER..at],
            &[0; SUM],
            &self.bytes[at + SUM..],
        ];
        Some(same(&hmac(secret, &parts), value))
    }
}

/// The packet of an Access-Request. Message-Authenticator is its first attribute.
pub fn access_request(id: u8, random: &[u8; SUM], more: &Attributes, secret: &[u8]) -> Vec<u8> {
    let mut all = Attributes::default();
    all.put(attribute::MESSAGE_AUTHENTICATOR, &[0; SUM]);
    all.0.extend(&more.0);
    let mut packet = header(code::ACCESS_REQUEST, id, &all);
    packet[4..HEADER].copy_from_slice(random);
    let sum = hmac(secret, &[&packet]);
    packet[HEADER + 2..HEADER + 2 + SUM].copy_from_slice(&sum);
    packet
}

/// The packet of an Accounting-Request (RFC 2866, section 3), whose authenticator is a sum.
pub fn accounting_request(id: u8, attributes: &Attributes, secret: &[u8]) -> Vec<u8> {
    let mut packet = header(code::ACCOUNTING_REQUEST, id, attributes);
    let sum = md5(&[&packet, secret]);
    packet[4..HEADER].copy_from_slice(&sum);
    packet
}

/// A packet with an empty authenticator.
fn header(code: u8, id: u8, attributes: &Attributes) -> Vec<u8> {
    let length = u16::try_from(HEADER + attributes.0.len()).unwrap_or(u16::MAX);
    let mut packet = Vec::with_capacity(HEADER + attributes.0.len());
    packet.extend([code, id]);
    packet.extend(length.to_be_bytes());
    packet.extend([0; SUM]);
    packet.extend(&attributes.0);
    packet
}

/// The value of User-Password (RFC 2865, section 5.2); at most [`PASSWORD`] bytes of the password count.
pub fn hidden(password: &[u8], random: &[u8; SUM], secret: &[u8]) -> Vec<u8> {
    let mut text = password[..password.len().min(PASSWORD)].to_vec();
    text.resize(text.len().next_multiple_of(SUM).max(SUM), 0);
    let mut before = *random;
    for part in text.chunks_exact_mut(SUM) {
        let pad = md5(&[secret, &before]);
        for (byte, pad) in part.iter_mut().zip(pad) {
            *byte ^= pad;
        }
        before.copy_from_slice(part);
    }
    text
}

fn md5(parts: &[&[u8]]) -> [u8; SUM] {
    let mut sum = Md5::new();
    parts.iter().for_each(|part| Digest::update(&mut sum, part));
    sum.finalize().into()
}

fn hmac(secret: &[u8], parts: &[&[u8]]) -> [u8; SUM] {
    let mut sum = <Hmac<Md5> as Mac>::new_from_slice(secret).expect("every length is a key's");
    parts.iter().for_each(|part| Mac::update(&mut sum, part));
    sum.finalize().into_bytes().into()
}

#[cfg(test)]
pub mod tests;

// SPDX-License-Identifier: Apache-2.0
//! Views and plain structs for Ethernet, ARP, IPv4, ICMP, UDP, TCP, PPPoE and PPP headers.
//!
//! A view (`ipv4::View`) wraps bytes; `new_checked` guarantees that every getter
//! and setter stays inside them, `new_unchecked` is for output whose length the
//! caller knows (accessors of a too short view panic). A `Repr` is a plain struct
//! that cannot be wrong: `parse` makes it from a view, `emit` writes it.
#![no_std]
#![forbid(unsafe_code)]
#[cfg(test)]
extern crate std;

pub mod arp;
pub mod checksum;
pub mod ether;
mod field;
pub mod icmp;
pub mod ipv4;
pub mod ppp;
pub mod pppoe;
pub mod tcp;
pub mod udp;

/// Why bytes are not the header they should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// Fewer bytes than the header needs.
    Truncated {
        /// Bytes there are.
        got: usize,
        /// Bytes there should be.
        need: usize,
    },
    /// A field that says how long something is contradicts the bytes or itself.
    BadLength,
    /// Not the version or kind this module knows.
    BadVersion,
    /// The checksum is wrong.
    BadChecksum,
}

impl core::fmt::Display for Error {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Truncated { got, need } => write!(f, "truncated: {got} bytes, needs {need}"),
            Self::BadLength => f.write_str("a length field is wrong"),
            Self::BadVersion => f.write_str("unknown version or kind"),
            Self::BadChecksum => f.write_str("wrong checksum"),
        }
    }
}

impl core::error::Error for Error {}

/// Checks that there are `need` bytes.
pub(crate) fn at_least(bytes: &[u8], need: usize) -> Result<(), Error> {
    if bytes.len() < need {
        Err(Error::Truncated {
            got: bytes.len(),
            need,
        })
    } else {
        Ok(())
    }
}

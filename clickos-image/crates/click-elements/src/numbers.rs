// SPDX-License-Identifier: Apache-2.0
//! Numbers that arguments may give by name: IP protocols, ports, ICMP types.
use click_core::ArgContext;
use click_core::value::{ByteAnno, number};

use crate::classify::names::{Kind, Lookup, lookup_at};
use crate::prelude::*;

/// A protocol such as `udp` or `17`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Protocol(pub u8);

/// An ICMP type such as `echo` or `8`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IcmpType(pub u8);

/// A differentiated services code point, 0 to 63.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dscp(pub u8);

/// A UDP port such as `dns` or `53`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UdpPort(pub u16);

/// A TCP port such as `www` or `80`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpPort(pub u16);

/// A number, or a name of `kind`.
fn named<T: TryFrom<u64>>(
    at: ArgContext<'_>,
    text: &str,
    what: &str,
    kind: Kind,
    protocol: Option<u32>,
) -> Result<T, String> {
    let by_name = || match lookup_at(at, text, Some(kind), protocol) {
        Lookup::Value(_, value) => Some(value.into()),
        _ => None,
    };
    let value = number(text).or_else(by_name);
    value
        .and_then(|n| T::try_from(n).ok())
        .ok_or_else(|| expected(what, text))
}

impl FromArg for Protocol {
    fn from_arg(text: &str, at: ArgContext<'_>) -> Result<Self, String> {
        named(at, text, "an IP protocol", Kind::Protocol, None).map(Self)
    }
}

impl FromArg for Dscp {
    fn from_arg(text: &str, at: ArgContext<'_>) -> Result<Self, String> {
        match u8::from_arg(text, at)? {
            dscp @ 0..=63 => Ok(Self(dscp)),
            dscp => Err(format!("{dscp} is out of range, the most is 63")),
        }
    }
}

impl FromArg for IcmpType {
    fn from_arg(text: &str, at: ArgContext<'_>) -> Result<Self, String> {
        named(at, text, "an ICMP type", Kind::IcmpType, Some(1)).map(Self)
    }
}

impl FromArg for UdpPort {
    fn from_arg(text: &str, at: ArgContext<'_>) -> Result<Self, String> {
        named(at, text, "a UDP port", Kind::Port, Some(17)).map(Self)
    }
}

impl FromArg for TcpPort {
    fn from_arg(text: &str, at: ArgContext<'_>) -> Result<Self, String> {
        named(at, text, "a TCP port", Kind::Port, Some(6)).map(Self)
    }
}

/// Where an annotation of two bytes is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WordAnno(pub usize);

impl WordAnno {
    /// Where `Search` leaves what it stripped.
    pub const DEFAULT: Self = Self(16);
}

impl FromArg for WordAnno {
    fn from_arg(text: &str, at: ArgContext<'_>) -> Result<Self, String> {
        let ByteAnno(offset) = ByteAnno::from_arg(text, at)?;
        let last = click_core::anno::SIZE - 2;
        if offset > last {
            return Err(format!(
                "annotation {offset} is out of range, the last of two bytes is {last}"
            ));
        }
        Ok(Self(offset))
    }
}

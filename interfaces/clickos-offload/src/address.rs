// SPDX-License-Identifier: Apache-2.0
//! What addresses of IPv4 and IPv6 have in common.
use core::fmt::{self, Display};
use core::net::{Ipv4Addr, Ipv6Addr};

/// An address as a number.
pub trait Address: Copy + PartialOrd {
    const BITS: u32;
    const FIRST: Self;
    const LAST: Self;
    /// Its kind in an error.
    const NAME: &'static str;

    /// Reads an address; none if the text is something else.
    fn read(text: &str) -> Option<Self>;
    /// Shows it as text.
    ///
    /// # Errors
    /// Those of the formatter.
    fn show(self, f: &mut fmt::Formatter<'_>) -> fmt::Result;
    fn wide(self) -> u128;
    /// The address of a number's last bits.
    fn narrow(number: u128) -> Self;
}

impl Address for u32 {
    const BITS: u32 = 32;
    const FIRST: Self = 0;
    const LAST: Self = Self::MAX;
    const NAME: &'static str = "an IPv4 address";

    fn read(text: &str) -> Option<Self> {
        text.parse::<Ipv4Addr>().ok().map(Into::into)
    }

    fn show(self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ipv4Addr::from(self).fmt(f)
    }

    fn wide(self) -> u128 {
        self.into()
    }

    fn narrow(number: u128) -> Self {
        number as Self
    }
}

impl Address for u128 {
    const BITS: u32 = 128;
    const FIRST: Self = 0;
    const LAST: Self = Self::MAX;
    const NAME: &'static str = "an IPv6 address";

    fn read(text: &str) -> Option<Self> {
        text.parse::<Ipv6Addr>().ok().map(Into::into)
    }

    fn show(self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ipv6Addr::from(self).fmt(f)
    }

    fn wide(self) -> u128 {
        self
    }

    fn narrow(number: u128) -> Self {
        number
    }
}

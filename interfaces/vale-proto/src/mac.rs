// SPDX-License-Identifier: Apache-2.0
//! Ethernet addresses.
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// An Ethernet address, written `02:00:00:00:00:01`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(with = "String")
)]
pub struct Mac(pub [u8; 6]);

impl Mac {
    /// True for broadcast too.
    pub fn is_multicast(self) -> bool {
        self.0[0] & 1 != 0
    }

    /// True for the address of a virtual router, of IPv4 or IPv6 (RFC 9568, section 7.3).
    pub fn is_virtual_router(self) -> bool {
        matches!(self.0, [0, 0, 0x5e, 0, 1 | 2, _])
    }
}

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl fmt::Debug for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Mac {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::read(text).map_err(|e| format!("mac: {e}"))
    }
}

impl Mac {
    fn read(text: &str) -> Result<Self, String> {
        let wrong = || format!("expected six octets like 02:00:00:00:00:01, got {text:.40?}");
        let mut octets = [0; 6];
        let mut parts = text.split(':');
        for octet in &mut octets {
            let part = parts
                .next()
                .filter(|p| p.len() == 2 && p.bytes().all(|b| b.is_ascii_hexdigit()));
            *octet = part
                .and_then(|p| u8::from_str_radix(p, 16).ok())
                .ok_or_else(wrong)?;
        }
        if parts.next().is_some() {
            Err(wrong())
        } else {
            Ok(Self(octets))
        }
    }
}

impl TryFrom<String> for Mac {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::read(&text)
    }
}

impl From<Mac> for String {
    fn from(mac: Mac) -> Self {
        mac.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_what_it_prints_and_nothing_else() {
        let mac: Mac = "02:00:00:aB:00:01".parse().unwrap();
        assert_eq!(mac.to_string(), "02:00:00:ab:00:01");
        assert!(!mac.is_multicast() && Mac([255; 6]).is_multicast());
        for bad in [
            "",
            "02:00:00:00:00",
            "02:00:00:00:00:01:02",
            "2:0:0:0:0:1",
            "+2:00:00:00:00:01",
            "é2:00",
        ] {
            assert!(bad.parse::<Mac>().is_err(), "{bad}");
        }
    }
}

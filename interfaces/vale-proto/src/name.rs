// SPDX-License-Identifier: Apache-2.0
//! Names of switches and ports.
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

macro_rules! checked_name {
    ($(#[$doc:meta])* $name:ident, $what:literal, $form:literal, $valid:expr) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(with = "String"))]
        pub struct $name(String);

        impl $name {
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, String> {
                let name = Self::try_from(text.to_owned());
                name.map_err(|e| format!(concat!($what, ": {}"), e))
            }
        }

        impl TryFrom<String> for $name {
            type Error = String;

            fn try_from(text: String) -> Result<Self, String> {
                let valid: fn(&str) -> bool = $valid;
                match valid(&text) {
                    true => Ok(Self(text)),
                    false => Err(format!(concat!("expected ", $form, ", got {:.40?}"), text)),
                }
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> Self {
                name.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

checked_name!(
    /// A switch, `vale0` to `vale9999`.
    SwitchName, "switch", "vale<N> with N of 1 to 4 digits", |text| {
        text.strip_prefix("vale").is_some_and(|n| (1..=4).contains(&n.len()) && n.bytes().all(|b| b.is_ascii_digit()))
    }
);

checked_name!(
    /// A port of a switch, with any usual name of an interface.
    PortName, "port", "1 to 15 of a-z, A-Z, 0-9, -, _ and ., not beginning with - and not . or ..", |text| {
        let is_usual = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
        (1..=15).contains(&text.len())
            && text.bytes().all(is_usual)
            && !text.starts_with('-')
            && !matches!(text, "." | "..")
    }
);

impl PortName {
    /// The name of a segment's uplink.
    pub fn of_uplink(segment: u32) -> Self {
        Self(format!("u{segment}"))
    }

    /// The name of the port that leads to the other hosts of a chain's path.
    pub fn of_path(number: u32) -> Self {
        Self(format!("path{number}"))
    }
}

checked_name!(
    /// A pipe of valed.
    PipeName, "pipe", "1 to 15 of a-z, 0-9 and -", |text| {
        (1..=15).contains(&text.len())
            && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
    }
);

checked_name!(
    /// A file in valed's `capture_dir`, without `.pcap`.
    FileName, "file", "1 to 36 of a-z, 0-9 and -", |text| {
        (1..=36).contains(&text.len())
            && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
    }
);

checked_name!(
    /// A chain of a switch.
    ChainName, "chain", "1 to 36 of a-z, 0-9 and -", |text| {
        (1..=36).contains(&text.len())
            && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
    }
);

checked_name!(
    /// A mirror of a switch, or the file that it fills.
    MirrorName, "mirror", "1 to 36 of a-z, 0-9 and -", |text| {
        (1..=36).contains(&text.len())
            && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
    }
);

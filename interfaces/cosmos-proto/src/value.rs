// SPDX-License-Identifier: Apache-2.0
//! Values of arguments. A value of these types cannot be wrong: the reader checks it, for the
//! daemon and its clients alike.
use std::fmt;
use std::ops::Deref;
use std::time::Duration;

use control_socket::quoted;
use serde::{Deserialize, Serialize};

/// Bytes of the parameter of a read.
pub const MAX_PARAM: usize = 255;

/// Longest name of a handler, a guest or a configuration, in bytes.
pub const MAX_NAME: usize = 255;
/// Longest command line of a kernel, in bytes: that of libcosmos.
pub const MAX_COMMAND_LINE: usize = 1023;
/// Longest configuration, in bytes.
pub const MAX_CONFIG: usize = 1 << 20;
/// Bytes of all writes of a request: a request to a guest has at most 1 MiB.
pub(crate) const MAX_WRITE_BYTES: usize = 1000 << 10;

/// A text with a check, of at most `max` bytes.
macro_rules! text {
    ($(#[doc = $doc:literal])+ $name:ident, max $max:expr, $check:expr) => {
        $(#[doc = $doc])+
        #[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        #[cfg_attr(
            feature = "schema",
            derive(schemars::JsonSchema),
            schemars(with = "String", extend("maxLength" = $max))
        )]
        pub struct $name(String);

        impl TryFrom<String> for $name {
            type Error = String;

            fn try_from(text: String) -> Result<Self, String> {
                let check: fn(&str) -> Result<(), String> = $check;
                check(&text).map(|()| Self(text))
            }
        }

        impl TryFrom<&str> for $name {
            type Error = String;

            fn try_from(text: &str) -> Result<Self, String> {
                text.to_owned().try_into()
            }
        }

        impl From<$name> for String {
            fn from(text: $name) -> Self {
                text.0
            }
        }

        impl Deref for $name {
            type Target = str;

            fn deref(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

text!(
    /// A handler: `ELEMENT.HANDLER`, or one of the router's own.
    HandlerName, max MAX_NAME, |name| {
        let is_good = name.bytes().all(|b| b.is_ascii_graphic());
        match is_good && (1..=MAX_NAME).contains(&name.len()) {
            true => Ok(()),
            false => Err(format!(
                "expected ELEMENT.HANDLER of 1 to {MAX_NAME} printable characters of ASCII, got {}",
                quoted(name)
            )),
        }
    }
);

text!(
    /// The parameter of a handler that takes one.
    Param, max MAX_PARAM, |text| {
        most(text, MAX_PARAM)?;
        match text.chars().any(char::is_control) {
            false => Ok(()),
            true => Err(format!("expected no control characters, got {}", quoted(text))),
        }
    }
);

text!(
    /// The name of a guest; several may have the same.
    GuestName, max MAX_NAME, name
);

text!(
    /// The name of a configuration, with which its errors begin.
    ConfigName, max MAX_NAME, name
);

text!(
    /// The command line of a kernel that is not Click's.
    CommandLine, max MAX_COMMAND_LINE, |line| {
        most(line, MAX_COMMAND_LINE)?;
        match line.bytes().position(|byte| !matches!(byte, b' '..=b'~')) {
            None => Ok(()),
            Some(at) => Err(format!(
                "expected printable characters of ASCII and blanks, got another one at byte {at}"
            )),
        }
    }
);

text!(
    /// A configuration; an empty one removes a router.
    ConfigText, max MAX_CONFIG, |text| {
        most(text, MAX_CONFIG)?;
        match text.find('\0') {
            None => Ok(()),
            Some(at) => Err(format!("expected a text without NUL characters, got one at byte {at}")),
        }
    }
);

fn name(text: &str) -> Result<(), String> {
    if (1..=MAX_NAME).contains(&text.len()) && !text.chars().any(char::is_control) {
        return Ok(());
    }
    Err(format!(
        "expected 1 to {MAX_NAME} bytes without control characters, got {}",
        quoted(text)
    ))
}

fn most(text: &str, max: usize) -> Result<(), String> {
    match text.len() {
        bytes if bytes <= max => Ok(()),
        bytes => Err(format!("expected at most {max} bytes, got {bytes}")),
    }
}

/// A number of a range.
macro_rules! number {
    ($(#[doc = $doc:literal])+ $name:ident of $raw:ident: $low:literal to $high:expr) => {
        $(#[doc = $doc])+
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(try_from = "u64", into = "u64")]
        #[cfg_attr(
            feature = "schema",
            derive(schemars::JsonSchema),
            schemars(with = "u64", extend("minimum" = $low, "maximum" = $high))
        )]
        pub struct $name($raw);

        impl $name {
            pub const fn get(self) -> $raw {
                self.0
            }
        }

        impl TryFrom<u64> for $name {
            type Error = String;

            fn try_from(number: u64) -> Result<Self, String> {
                match $raw::try_from(number) {
                    Ok(good) if ($low..=$high).contains(&good) => Ok(Self(good)),
                    _ => Err(format!("expected {} to {}, got {number}", $low, $high)),
                }
            }
        }

        impl From<$name> for u64 {
            fn from(number: $name) -> Self {
                number.0.into()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

number!(
    /// A router of a guest.
    Rid of u8: 0 to clickos_protocol::MAX_RID
);

number!(
    /// The memory of a guest in MiB: the engine needs some, and no guest needs more.
    MemoryMib of u32: 4 to 65_536
);

number!(
    /// The threads of a guest that forward.
    Vcpus of u8: 1 to MAX_VCPUS
);

number!(
    /// The time until a deadline, in milliseconds.
    TimeoutMs of u64: 1 to 600_000
);

/// The first router of a guest.
impl Default for Rid {
    fn default() -> Self {
        Self(0)
    }
}

/// The VCPUs of a guest at most, on a host whose guests may have several.
pub const MAX_VCPUS: u8 = 8;

impl Default for Vcpus {
    fn default() -> Self {
        Self(1)
    }
}

impl Default for TimeoutMs {
    fn default() -> Self {
        Self(5_000)
    }
}

impl TimeoutMs {
    pub fn duration(self) -> Duration {
        Duration::from_millis(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handler_names() {
        for good in ["fw.config", "a/b@1.count", "a.b.c", "handlers"] {
            assert!(HandlerName::try_from(good).is_ok(), "{good}");
        }
        for bad in ["", "a b.c", "a.b\n", "é.x", &"a".repeat(256)] {
            assert!(HandlerName::try_from(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_refusal_names_value_and_limit() {
        let long = "a".repeat(300);
        for (error, words) in [
            (
                GuestName::try_from("a\u{1b}[2J").unwrap_err(),
                "expected 1 to 255 bytes without control characters, got \"a\\u{1b}[2J\"",
            ),
            (
                Param::try_from(&*long).unwrap_err(),
                "expected at most 255 bytes, got 300",
            ),
            (
                CommandLine::try_from(&*"a".repeat(1024)).unwrap_err(),
                "expected at most 1023 bytes, got 1024",
            ),
            (
                CommandLine::try_from("quiet\nkernel='x'").unwrap_err(),
                "expected printable characters of ASCII and blanks, got another one at byte 5",
            ),
            (
                ConfigText::try_from("a\0").unwrap_err(),
                "expected a text without NUL characters, got one at byte 1",
            ),
            (
                TimeoutMs::try_from(0).unwrap_err(),
                "expected 1 to 600000, got 0",
            ),
            (
                TimeoutMs::try_from(600_001).unwrap_err(),
                "expected 1 to 600000, got 600001",
            ),
            (
                MemoryMib::try_from(3).unwrap_err(),
                "expected 4 to 65536, got 3",
            ),
            (Vcpus::try_from(0).unwrap_err(), "expected 1 to 8, got 0"),
            (Vcpus::try_from(9).unwrap_err(), "expected 1 to 8, got 9"),
            (Rid::try_from(64).unwrap_err(), "expected 0 to 63, got 64"),
            (Rid::try_from(256).unwrap_err(), "expected 0 to 63, got 256"),
        ] {
            assert_eq!(error, words);
        }
        let error = HandlerName::try_from(&*long).unwrap_err();
        assert!(error.ends_with("aaa\"..."), "{error}");
        assert!(error.len() < 150, "{error}");
    }
}

// SPDX-License-Identifier: Apache-2.0
//! Pieces of the lines that printing elements write.
use core::fmt::Write as _;

use crate::prelude::*;

/// How packet contents are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contents {
    None,
    Hex,
    Ascii,
}

impl Contents {
    /// Reads argument `name`: `NONE`, `HEX`, `ASCII`, or a truth value.
    pub fn argument(a: &mut Args<'_>, name: &str, default: &str) -> Option<Self> {
        let word = a.or(name, default.to_string())?;
        match word.to_ascii_uppercase().as_str() {
            "NONE" | "NO" | "FALSE" | "0" => Some(Self::None),
            "HEX" | "YES" | "TRUE" | "1" => Some(Self::Hex),
            "ASCII" => Some(Self::Ascii),
            _ => {
                a.error(name, format!("expected NONE, HEX or ASCII, got \"{word}\""));
                None
            }
        }
    }
}

/// Appends a time in seconds, with micro- or, where there are any, nanoseconds. Times before the epoch are
/// in two's complement.
pub fn stamp(line: &mut String, ns: u64) {
    let (sign, ns) = match ns as i64 {
        signed @ ..0 => ("-", signed.unsigned_abs()),
        _ => ("", ns),
    };
    line.push_str(sign);
    let (seconds, fraction) = (ns / 1_000_000_000, ns % 1_000_000_000);
    let _ = match fraction % 1000 {
        0 => write!(line, "{seconds}.{:06}", fraction / 1000),
        _ => write!(line, "{seconds}.{fraction:09}"),
    };
}

/// Appends bytes in hexadecimal, a blank behind every `group`.
pub fn hex(line: &mut String, bytes: &[u8], group: usize) {
    for (index, byte) in bytes.iter().enumerate() {
        if index > 0 && index % group == 0 {
            line.push(' ');
        }
        let _ = write!(line, "{byte:02x}");
    }
}

/// Appends bytes as text, a dot for what is not text, a blank before every eighth but the first.
pub fn ascii(line: &mut String, bytes: &[u8]) {
    for (index, byte) in bytes.iter().enumerate() {
        if index > 0 && index % 8 == 0 {
            line.push(' ');
        }
        line.push(if (32..127).contains(byte) {
            char::from(*byte)
        } else {
            '.'
        });
    }
}

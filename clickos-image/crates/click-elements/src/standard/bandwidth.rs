// SPDX-License-Identifier: Apache-2.0
//! Bytes a second, written as Click does: `384kbps`, `1.5MBps`; a bare number is bytes.
use crate::decimal;
use crate::prelude::*;
use click_core::ArgContext;

/// Bytes a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bandwidth(pub u64);

/// Units and how many of them a byte a second is.
const UNITS: [(&str, f64); 5] = [
    ("baud", 8.0),
    ("bps", 8.0),
    ("b/s", 8.0),
    ("Bps", 1.0),
    ("B/s", 1.0),
];

/// Factors in front of a unit.
const PREFIXES: [(char, f64); 4] = [('k', 1e3), ('K', 1e3), ('M', 1e6), ('G', 1e9)];

impl FromArg for Bandwidth {
    fn from_arg(text: &str, _: ArgContext<'_>) -> Result<Self, String> {
        let unit = UNITS
            .iter()
            .find_map(|(name, per_byte)| Some((text.strip_suffix(name)?, *per_byte)));
        let (rest, per_byte) = unit.unwrap_or((text, 1.0));
        let prefix = PREFIXES
            .iter()
            .find_map(|(name, factor)| Some((rest.strip_suffix(*name)?, *factor)));
        let (digits, factor) = prefix.unwrap_or((rest, 1.0));
        let digits = digits.trim_end();
        let plain = digits.bytes().all(|b| b.is_ascii_digit() || b == b'.');
        let Some(number) = decimal::parse(digits).filter(|_| plain) else {
            return Err(format!(
                "expected a bandwidth such as 384kbps, got \"{}\"",
                text.shown()
            ));
        };
        // a decimal fraction may come out a hair too small
        let bytes = number * factor / per_byte + 1e-6;
        if bytes >= u64::MAX as f64 {
            return Err(format!(
                "{text} is out of range, the most is {}Bps",
                u64::MAX
            ));
        }
        Ok(Self(bytes as u64))
    }
}

/// `number` divided by ten to the power of `digits`, without zeros at the end.
fn shifted(number: u64, digits: u32) -> String {
    let unit = 10u64.pow(digits);
    let width = digits as usize;
    let text = format!("{}.{:0width$}", number / unit, number % unit);
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

impl core::fmt::Display for Bandwidth {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let bytes = self.0;
        let (number, digits, unit) = match bytes {
            0x2000_0000.. => (bytes, 6, "MBps"),
            125_000_000.. => (bytes * 8, 9, "Gbps"),
            125_000.. => (bytes * 8, 6, "Mbps"),
            _ => (bytes * 8, 3, "kbps"),
        };
        write!(f, "{}{unit}", shifted(number, digits))
    }
}

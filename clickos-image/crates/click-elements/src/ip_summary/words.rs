// SPDX-License-Identifier: Apache-2.0
//! The words of a line, as numbers.
use super::field::{FLAGS, PROTOCOLS};
use crate::classify::names::{Kind, Lookup, lookup};
use crate::prelude::*;

pub const SECOND_NS: u64 = 1_000_000_000;

/// Parses a protocol: a number, or the letter of one.
pub fn protocol(word: &str) -> Option<u8> {
    let letter = PROTOCOLS
        .iter()
        .find(|(l, _)| word.len() == 1 && word.starts_with(*l));
    let named = || match lookup(word, Some(Kind::Protocol), None) {
        Lookup::Value(_, number) => u8::try_from(number).ok(),
        _ => None,
    };
    let known = letter.map(|(_, p)| *p).or_else(|| word.parse().ok());
    known.or_else(named)
}

/// Parses a length; none of a packet is longer than 64 KiB.
pub fn length(word: &str) -> Option<usize> {
    word.parse().ok().filter(|n| *n <= usize::from(u16::MAX))
}

/// Parses seconds with a fraction of at most nine digits; `.5` is half a second.
pub fn time(word: &str) -> Option<u64> {
    let (seconds, fraction) = word.split_once('.').unwrap_or((word, ""));
    let seconds = if seconds.is_empty() { "0" } else { seconds };
    let digits = fraction
        .get(..fraction.len().min(9))
        .filter(|f| f.bytes().all(|b| b.is_ascii_digit()))?;
    let ns: u64 = format!("{digits:0<9}").parse().ok()?;
    whole_seconds(seconds)?.checked_add(ns)
}

/// Parses seconds, as nanoseconds.
pub fn whole_seconds(word: &str) -> Option<u64> {
    word.parse::<u64>().ok()?.checked_mul(SECOND_NS)
}

/// Parses the flags of TCP: a number, or a letter each.
pub fn flags(word: &str) -> Option<u16> {
    if let Ok(number) = word.parse() {
        return Some(number);
    }
    let mut bits = 0;
    for letter in word.chars().filter(|c| *c != '.') {
        let letter = match letter {
            'W' | 'Y' => 'C',
            'X' => 'E',
            other => other,
        };
        bits |= 1 << FLAGS.find(letter)?;
    }
    Some(bits)
}

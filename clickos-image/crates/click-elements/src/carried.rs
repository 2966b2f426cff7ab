// SPDX-License-Identifier: Apache-2.0
//! Learned state as text, for the handler `state` of an element. A guest that moves to another host
//! carries it (docs/adr/0070). A written state is a stranger's text: it is checked as a whole first.
//!
//! The first line names the element's kind and the version of the form. An entry is a line; ages are
//! in milliseconds, since clocks of two hosts differ.
use crate::prelude::*;

const NS_PER_MS: u64 = 1_000_000;
/// The words of the longest entry: a flow of a rewriter whose sequence numbers have moved.
const MAX_WORDS: usize = 17;

/// Text of entries, of which the newest come first: those that fit, the newest last.
pub fn render(head: &str, view: &View<'_>, newest: impl Iterator<Item = String>) -> String {
    let most = view.arg_context().environment.limits.answer_bytes;
    let mut left = most.saturating_sub(head.len() + 1);
    let fits = |line: &String| {
        debug_assert!(
            line.split(' ').count() <= MAX_WORDS,
            "no guest takes {line}"
        );
        let need = line.len() + 1;
        let is_good = need <= left;
        left = left.saturating_sub(need);
        is_good
    };
    let mut lines: Vec<String> = newest.take_while(fits).collect();
    lines.push(head.into());
    lines.reverse();
    lines.into_iter().map(|line| line + "\n").collect()
}

/// Reads entries; `entry` gets the words of a line.
pub fn parse<T>(
    head: &str,
    value: &str,
    entry: impl Fn(&[&str]) -> Option<T>,
) -> Result<Vec<T>, HandlerError> {
    let mut lines = value.lines();
    if lines.next() != Some(head) {
        let message = format!("line 1: expected \"{head}\"");
        return Err(HandlerError::rejected(message));
    }
    let read = |(at, line): (usize, &str)| {
        // one word more than an entry has, so that its reader refuses a longer line
        let words = line.split_ascii_whitespace().take(MAX_WORDS + 1);
        let words: Vec<&str> = words.collect();
        entry(&words).ok_or_else(|| {
            HandlerError::rejected(format!("line {}: no entry of \"{head}\"", at + 2))
        })
    };
    lines.enumerate().map(read).collect()
}

/// The age of what happened at a time.
pub fn age_ms(now_ns: u64, at_ns: u64) -> u64 {
    now_ns.saturating_sub(at_ns) / NS_PER_MS
}

/// When something happened that has an age; never before the clock began.
pub fn at_ns(now_ns: u64, age_ms: u64) -> u64 {
    now_ns
        .saturating_sub(age_ms.saturating_mul(NS_PER_MS))
        .max(1)
}

/// A number as such texts have it.
pub fn number<T: core::str::FromStr>(word: &str) -> Option<T> {
    let plain = word.bytes().all(|byte| byte.is_ascii_digit());
    word.parse().ok().filter(|_| plain)
}

/// A hardware address.
pub fn mac(word: &str) -> Option<[u8; 6]> {
    let mut parts = word.split(['-', ':']);
    let mut mac = [0; 6];
    for byte in &mut mac {
        let digits = |part: &&str| part.bytes().all(|digit| digit.is_ascii_hexdigit());
        let part = parts.next().filter(|part| part.len() == 2).filter(digits)?;
        *byte = u8::from_str_radix(part, 16).ok()?;
    }
    parts.next().is_none().then_some(mac)
}

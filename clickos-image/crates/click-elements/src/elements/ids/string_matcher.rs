// SPDX-License-Identifier: Apache-2.0
//! Finds packets that contain one of many texts.
//!
//! # Synopsis
//! `StringMatcher(PATTERN, ... [, NOCASE])`: all patterns are looked for at once, anywhere in the data. With NOCASE (default
//! false) letters of ASCII match in upper and lower case.
//! # Ports
//! 1/1-2, agnostic. Packets with a pattern leave by output 1, or are dropped; the others leave by output 0.
//! # Handlers
//! * `config` (read, write): the arguments; without NOCASE it stays as it is. A new list takes effect between two packets, a wrong one changes nothing.
//! * `matches` (read): packets with a pattern. `reset_count` (write): sets it to 0.
//! # Differences from Click
//! See `Search`.
//! # Example
//! `... -> ids :: StringMatcher("/etc/passwd", "cmd.exe") -> Queue -> ...; ids[1] -> Print(ALERT) -> Discard;`
use aho_corasick::automaton::Automaton;
use aho_corasick::dfa::{self, DFA};
use aho_corasick::nfa::{contiguous, noncontiguous};
use aho_corasick::{BuildError, Input, MatchKind};
use click_core::Limits;
use click_core::memory::{RESERVE, has_room};
use click_core::text::{split_args, unquote_bytes};

use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "StringMatcher",
    ports: "1/1-2",
    processing: "a/ah",
    args: &[rest("PATTERN"), keyword("NOCASE")],
    handlers: &[
        read_write(
            "config",
            |_: &mut StringMatcher, view| text(view.config()),
            StringMatcher::set_config,
        ),
        read("matches", |me, _| text(me.matches)),
        command("reset_count", run!(|me, _| me.matches = 0)),
    ],
    build: |a| {
        let no_case = a.or("NOCASE", false)?;
        match compile(a.rest(), no_case, &a.environment().limits) {
            Ok(patterns) => Some(Box::new(StringMatcher {
                patterns,
                no_case,
                matches: 0,
            })),
            Err(messages) => {
                messages.iter().for_each(|m| a.error("PATTERN", m));
                None
            }
        }
    },
    ..Class::DEFAULT
};

const NO_CASE: &str = "NOCASE ";

fn compile(patterns: &[String], no_case: bool, limits: &Limits) -> Result<Patterns, Vec<String>> {
    let most = limits.table_entries;
    if patterns.len() > most {
        let count = patterns.len();
        return Err(vec![format!("{count} patterns, the limit is {most}")]);
    }
    let total = patterns.iter().map(String::len).sum::<usize>();
    if total > most {
        return Err(vec![format!(
            "patterns of {total} bytes, the limit is {most}"
        )]);
    }
    let bytes: Vec<Vec<u8>> = patterns.iter().map(|p| unquote_bytes(p)).collect();
    let empty = bytes.iter().enumerate().filter(|(_, b)| b.is_empty());
    let errors: Vec<String> = empty
        .map(|(index, _)| format!("pattern {index} is empty"))
        .collect();
    if !errors.is_empty() {
        return Err(errors);
    }
    let size = Size::of(&bytes, no_case);
    let is_fast = bytes.len() <= MAX_FAST && size.fast <= FAST_BYTES_PER_ENTRY * most;
    let needed = size.small + if is_fast { size.fast } else { 0 };
    if !has_room(needed + RESERVE) {
        return Err(vec![format!(
            "patterns of {total} bytes may take {needed} bytes, and no memory is left"
        )]);
    }
    Patterns::new(&bytes, no_case, is_fast).map_err(|e| vec![e.to_string()])
}

/// Patterns up to this number get the fastest automaton, which takes most memory.
const MAX_FAST: usize = 100;
/// The most bytes of that automaton, for each entry that a table may have: a sixteenth of a guest's memory.
const FAST_BYTES_PER_ENTRY: usize = 64;
/// Bytes of a state of the others while they are made: a list that grows takes three times its size.
const SMALL_BYTES: usize = 3 * (20 + 2 * 9 + 2 * 8 + 5 * 4);
/// Bytes of their states near the start, which have a table each.
const START_BYTES: usize = 257 * 256 * 4;
/// Bytes of a transition of the fastest automaton.
const TRANSITION: usize = 4;

/// The most bytes that automata of some patterns take.
struct Size {
    fast: usize,
    small: usize,
}

impl Size {
    fn of(patterns: &[Vec<u8>], no_case: bool) -> Self {
        let mut seen = [false; 256];
        for byte in patterns.iter().flatten() {
            seen[usize::from(*byte)] = true;
            let letter = byte.is_ascii_alphabetic() && no_case;
            seen[usize::from(*byte ^ (u8::from(letter) << 5))] = true;
        }
        // each byte is a class, and the bytes between two of them
        let distinct = seen.iter().filter(|seen| **seen).count();
        let classes = (2 * distinct + 1).min(256).next_power_of_two();
        let states = patterns.iter().map(Vec::len).sum::<usize>() + 4;
        Self {
            fast: states * classes * TRANSITION,
            small: states * SMALL_BYTES + START_BYTES,
        }
    }
}

/// The automaton: of the kinds of `aho_corasick::AhoCorasick`, without the code of those that nothing needs.
enum Patterns {
    Fast(DFA),
    Small(contiguous::NFA),
}

impl Patterns {
    fn new(bytes: &[Vec<u8>], no_case: bool, is_fast: bool) -> Result<Self, BuildError> {
        let mut builder = noncontiguous::Builder::new();
        builder.ascii_case_insensitive(no_case);
        // Which pattern matches is not asked for: states need no lists of all that do.
        builder.match_kind(MatchKind::LeftmostFirst).dense_depth(1);
        let nfa = builder.build(bytes)?;
        if is_fast {
            return dfa::Builder::new()
                .build_from_noncontiguous(&nfa)
                .map(Self::Fast);
        }
        contiguous::Builder::new()
            .build_from_noncontiguous(&nfa)
            .map(Self::Small)
    }

    fn is_match(&self, data: &[u8]) -> bool {
        let input = Input::new(data).earliest(true);
        let found = match self {
            Self::Fast(dfa) => dfa.try_find(&input),
            Self::Small(nfa) => nfa.try_find(&input),
        };
        // the search is not anchored, which both can do
        found.is_ok_and(|found| found.is_some())
    }
}

struct StringMatcher {
    patterns: Patterns,
    no_case: bool,
    matches: u64,
}

impl InPlace for StringMatcher {
    const USE: Use = Use::Reads;

    fn output_port(&mut self, _ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        if !self.patterns.is_match(packet.data()) {
            return 0;
        }
        self.matches += 1;
        1
    }
}

impl StringMatcher {
    fn set_config(&self, view: &View<'_>, value: &str) -> Result<Change, HandlerError> {
        let (mut no_case, mut words) = (self.no_case, split_args(value));
        if let Some(n) = words.iter().position(|word| word.starts_with(NO_CASE)) {
            no_case = view.parse(&words.remove(n)[NO_CASE.len()..])?;
        }
        let limits = &view.arg_context().environment.limits;
        let compiled = compile(&words, no_case, limits);
        let patterns = compiled.map_err(|messages| HandlerError::rejected(messages.join("\n")))?;
        Ok(Change::of(move |me: &mut Self, _| {
            (me.patterns, me.no_case) = (patterns, no_case);
        }))
    }
}

impl Element for StringMatcher {
    in_place!(plain);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers of a fixed row.
    struct Row(u32);

    impl Row {
        fn below(&mut self, end: u32) -> usize {
            self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            ((self.0 >> 8) % end) as usize
        }

        fn word(&mut self, longest: u32) -> Vec<u8> {
            let length = 1 + self.below(longest);
            (0..length).map(|_| b'a' + self.below(2) as u8).collect()
        }
    }

    #[test]
    fn both_automata_find_what_a_plain_search_finds() {
        let mut row = Row(7);
        for _ in 0..2000 {
            let count = 1 + row.below(5);
            let patterns: Vec<_> = (0..count).map(|_| row.word(5)).collect();
            let data = row.word(12);
            let plain = patterns
                .iter()
                .any(|p| data.windows(p.len()).any(|part| part == *p));
            for is_fast in [false, true] {
                let made = Patterns::new(&patterns, false, is_fast).unwrap();
                assert_eq!(made.is_match(&data), plain, "{patterns:?} in {data:?}");
            }
        }
    }

    #[test]
    fn the_size_counts_both_cases_of_letters() {
        let pattern = |text: &str| vec![text.as_bytes().to_vec()];
        let classes = |no_case| Size::of(&pattern("ab1@"), no_case).fast / 8 / TRANSITION;
        assert_eq!(classes(false), 16);
        assert_eq!(classes(true), 16);
        let all: Vec<u8> = (0..=255).collect();
        let size = Size::of(&[all], false);
        assert_eq!(size.fast, 260 * 256 * TRANSITION);
    }
}

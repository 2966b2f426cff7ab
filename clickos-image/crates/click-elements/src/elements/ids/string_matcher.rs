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
//! # Example
//! `... -> ids :: StringMatcher("/etc/passwd", "cmd.exe") -> Queue -> ...; ids[1] -> Print(ALERT) -> Discard;`
use aho_corasick::automaton::Automaton;
use aho_corasick::dfa::{self, DFA};
use aho_corasick::nfa::{contiguous, noncontiguous};
use aho_corasick::{BuildError, Input};
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
        let most = a.environment().limits.table_entries;
        let no_case = a.or("NOCASE", false)?;
        match compile(a.rest(), no_case, most) {
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

fn compile(patterns: &[String], no_case: bool, most: usize) -> Result<Patterns, Vec<String>> {
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
    Patterns::new(&bytes, no_case).map_err(|e| vec![e.to_string()])
}

/// Patterns up to this number get the fastest automaton, which takes most memory.
const MOST_FAST: usize = 100;

/// The automaton: of the kinds of `aho_corasick::AhoCorasick`, without the code of those that nothing needs.
enum Patterns {
    Fast(DFA),
    Small(contiguous::NFA),
}

impl Patterns {
    fn new(bytes: &[Vec<u8>], no_case: bool) -> Result<Self, BuildError> {
        let mut builder = noncontiguous::Builder::new();
        let nfa = builder.ascii_case_insensitive(no_case).build(bytes)?;
        if bytes.len() <= MOST_FAST {
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
        let most = view.surroundings().environment.limits.table_entries;
        let (mut no_case, mut words) = (self.no_case, split_args(value));
        if let Some(n) = words.iter().position(|word| word.starts_with(NO_CASE)) {
            no_case = view.parse(&words.remove(n)[NO_CASE.len()..])?;
        }
        let compiled = compile(&words, no_case, most);
        let patterns = compiled.map_err(|messages| HandlerError::rejected(messages.join("\n")))?;
        Ok(Change::of(move |me: &mut Self, _| {
            (me.patterns, me.no_case) = (patterns, no_case);
        }))
    }
}

impl Element for StringMatcher {
    in_place!(plain);
}

// SPDX-License-Identifier: Apache-2.0
//! Regular expressions of rules, searched in linear time.
//!
//! The automaton is made while it is searched, in a memory of fixed size. A search whose automaton does not fit ends
//! without an answer.
use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::nfa::thompson;
use regex_automata::util::syntax;
use regex_automata::{Anchored, Input, MatchKind};

use crate::prelude::*;

/// Bytes of an expression, of its states, and of the automaton that a search makes of them.
const LONGEST: usize = 512;
const STATES_BYTES: usize = 16 << 10;
const CACHE_BYTES: usize = 64 << 10;
/// An automaton that was thrown away this often in one search has to save work to go on.
const CLEARS: usize = 3;
const BYTES_PER_STATE: usize = 10;

/// An expression.
#[derive(Debug)]
pub struct Pcre {
    dfa: DFA,
    pub is_negated: bool,
    /// It counts from the end of the content before.
    pub is_relative: bool,
    /// It begins there, or at the start of the data, and not behind it.
    pub is_anchored: bool,
}

/// What a search found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    Yes,
    No,
    /// It took too much.
    TooMuch,
}

impl Pcre {
    /// Reads `/expression/flags`.
    pub fn of(text: &str, is_negated: bool) -> Result<Self, String> {
        if text.len() > LONGEST {
            return Err(format!("{} bytes, the limit is {LONGEST}", text.len()));
        }
        let inner = text
            .strip_prefix('/')
            .and_then(|text| text.rsplit_once('/'));
        let (pattern, flags) = inner.ok_or("expected /expression/flags")?;
        let (mut is_relative, is_multi_line) = (false, flags.contains('m'));
        let mut config = syntax::Config::new().unicode(false).utf8(false);
        for flag in flags.chars() {
            config = match flag {
                'i' => config.case_insensitive(true),
                's' => config.dot_matches_new_line(true),
                'm' => config.multi_line(true),
                'x' => config.ignore_whitespace(true),
                'U' | 'H' | 'P' | 'C' | 'I' | 'D' | 'M' | 'Q' | 'V' | 'W' | 'Y' | 'B' | 'O' => {
                    return Err(format!("flag {flag} is not taken"));
                }
                'R' => {
                    is_relative = true;
                    config
                }
                _ => return Err(format!("flag {flag} is not known")),
            };
        }
        let is_anchored = !is_multi_line && pattern.starts_with('^') && !pattern.contains('|');
        let pattern = if is_anchored { &pattern[1..] } else { pattern };
        Ok(Self {
            dfa: compile(pattern, config)?,
            is_negated,
            is_relative,
            is_anchored,
        })
    }

    /// Looks for it from a place on.
    pub fn find(&self, memory: &mut Memory, number: usize, bytes: &[u8], from: usize) -> Found {
        let cache = memory.of(number, &self.dfa);
        let anchored = if self.is_anchored {
            Anchored::Yes
        } else {
            Anchored::No
        };
        let input = Input::new(bytes)
            .range(from.min(bytes.len())..)
            .anchored(anchored)
            .earliest(true);
        match self.dfa.try_search_fwd(cache, &input) {
            Ok(found) => {
                if found.is_some() {
                    Found::Yes
                } else {
                    Found::No
                }
            }
            Err(_) => Found::TooMuch,
        }
    }
}

fn compile(pattern: &str, syntax: syntax::Config) -> Result<DFA, String> {
    let config = DFA::config()
        .match_kind(MatchKind::LeftmostFirst)
        .cache_capacity(CACHE_BYTES)
        .minimum_cache_clear_count(Some(CLEARS))
        .minimum_bytes_per_state(Some(BYTES_PER_STATE));
    let hir = syntax::parse_with(pattern, &syntax).map_err(|error| {
        // the other lines draw the expression
        let text = error.to_string();
        let line = text.lines().last().unwrap_or_default();
        String::from(line.trim_start_matches("error: "))
    })?;
    let states = thompson::Config::new()
        .utf8(false)
        .nfa_size_limit(Some(STATES_BYTES));
    let nfa = thompson::Compiler::new()
        .configure(states)
        .build_from_hir(&hir);
    let nfa = nfa.map_err(|error| match error.size_limit() {
        Some(limit) => format!("its states take more than {limit} bytes"),
        None => error.to_string(),
    })?;
    let made = DFA::builder().configure(config).build_from_nfa(nfa);
    made.map_err(|error| error.to_string())
}

/// The memory of searches: that of the last expression.
#[derive(Default)]
pub struct Memory(Option<(usize, Cache)>);

impl Memory {
    fn of(&mut self, number: usize, dfa: &DFA) -> &mut Cache {
        let (known, cache) = self.0.get_or_insert_with(|| (number, dfa.create_cache()));
        if *known != number {
            cache.reset(dfa);
            *known = number;
        }
        cache
    }

    /// Forgets the expressions.
    pub fn clear(&mut self) {
        self.0 = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(text: &str, bytes: &str, from: usize) -> Found {
        let pcre = Pcre::of(text, false).unwrap();
        pcre.find(&mut Memory::default(), 0, bytes.as_bytes(), from)
    }

    #[test]
    fn flags_and_places_count() {
        assert_eq!(find("/a.c/", "xabcx", 0), Found::Yes);
        assert_eq!(find("/a.c/", "xabcx", 2), Found::No);
        assert_eq!(find("/A.C/i", "xabc", 0), Found::Yes);
        assert_eq!(find("/a.c/s", "a\nc", 0), Found::Yes);
        assert_eq!(find("/a.c/", "a\nc", 0), Found::No);
        assert_eq!(find("/^bc/R", "xabc", 2), Found::Yes);
        assert_eq!(find("/^bc/R", "xabc", 1), Found::No);
        assert_eq!(find(r"/a\/b\x41/", "a/bA", 0), Found::Yes);
    }

    #[test]
    fn what_takes_too_much_is_refused_or_ends() {
        for (wrong, reason) in [
            (r"/(a)\1/", "backreferences are not supported"),
            ("/(?=a)/", "look-around"),
            ("/a/U", "flag U is not taken"),
            ("/a{9999}/", "more than 16384 bytes"),
            ("a", "expected /expression/flags"),
        ] {
            let error = Pcre::of(wrong, false).unwrap_err();
            assert!(error.contains(reason), "{wrong}: {error}");
        }
        // each byte makes a new state
        let pcre = Pcre::of("/[ab]*a[ab]{60}c/", false).unwrap();
        let mut row = 1u32;
        let mut next = || {
            row = row.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            if row >> 31 == 0 { b'a' } else { b'b' }
        };
        let bytes: Vec<u8> = (0..60_000).map(|_| next()).collect();
        assert_eq!(
            pcre.find(&mut Memory::default(), 0, &bytes, 0),
            Found::TooMuch
        );
    }

    #[test]
    fn a_memory_serves_one_expression_after_the_other() {
        let (a, b) = (
            Pcre::of("/a+b/", false).unwrap(),
            Pcre::of("/[c-e]{2}/", false).unwrap(),
        );
        let mut memory = Memory::default();
        for _ in 0..3 {
            assert_eq!(a.find(&mut memory, 0, b"xaab", 0), Found::Yes);
            assert_eq!(b.find(&mut memory, 1, b"xaab", 0), Found::No);
            assert_eq!(b.find(&mut memory, 1, b"xde", 0), Found::Yes);
        }
    }
}

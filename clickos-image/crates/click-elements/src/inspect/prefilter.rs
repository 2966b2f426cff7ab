// SPDX-License-Identifier: Apache-2.0
//! One automaton over a content of each rule: it says which rules may hold. Its state goes from segment to segment, so
//! that each byte of a stream is looked at once.
use aho_corasick::automaton::{Automaton, StateID};
use aho_corasick::dfa::{self, DFA};
use aho_corasick::nfa::{contiguous, noncontiguous};
use aho_corasick::{Anchored, MatchKind};
use click_core::memory::{RESERVE, has_room};

use super::rules::{Rule, Sizes};
use crate::prelude::*;

/// Bytes of a content that the automaton looks for.
const LONGEST: usize = 16;
/// Bytes of a state while the automaton is made, and of the start's table.
const STATE_BYTES: usize = 256;
const START_BYTES: usize = 257 * 256 * 4;
/// The most memory of the fast form, for each entry that a table may have: a sixteenth of a guest's memory.
const FAST_BYTES_PER_ENTRY: usize = 64;
/// Bytes of a state of the fast form: a number for each byte.
const FAST_STATE_BYTES: usize = 256 * 4;

/// Where the search in a stream is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position(StateID);

#[derive(Debug)]
enum Kind {
    /// No rule has a content.
    Empty,
    Fast(DFA),
    Small(contiguous::NFA),
}

/// The automaton.
#[derive(Debug)]
pub struct Prefilter {
    kind: Kind,
    /// The rules of each of its texts.
    rules: Vec<Vec<u16>>,
}

impl Prefilter {
    /// The automaton of some rules.
    ///
    /// # Errors
    /// There is no memory for it.
    pub fn of(rules: &[Rule], sizes: &Sizes) -> Result<Self, String> {
        let mut texts: Vec<(Vec<u8>, Vec<u16>)> = Vec::new();
        for (number, rule) in (0..).zip(rules) {
            let Some(content) = rule.fast() else {
                continue;
            };
            let end = content.bytes.len().min(LONGEST);
            let text = content.bytes[..end].to_ascii_lowercase();
            texts.push((text, vec![number]));
        }
        texts.sort();
        texts.dedup_by(|next, kept| {
            let is_same = next.0 == kept.0;
            if is_same {
                kept.1.append(&mut next.1);
            }
            is_same
        });
        let (texts, rules): (Vec<_>, Vec<_>) = texts.into_iter().unzip();
        let kind = build(&texts, sizes)?;
        Ok(Self { kind, rules })
    }

    /// The start of a stream, or of a packet.
    pub fn start(&self) -> Option<Position> {
        match &self.kind {
            Kind::Empty => None,
            Kind::Fast(automaton) => automaton.start_state(Anchored::No).ok(),
            Kind::Small(automaton) => automaton.start_state(Anchored::No).ok(),
        }
        .map(Position)
    }

    /// Continues over bytes; `found` gets each rule that may hold, more than once where its text is there more often,
    /// and how many of the bytes were read.
    pub fn run(&self, at: &mut Option<Position>, bytes: &[u8], mut found: impl FnMut(u16, usize)) {
        let Some(Position(state)) = at else {
            return;
        };
        let mut hit = |text: usize, read: usize| {
            self.rules[text].iter().for_each(|rule| found(*rule, read));
        };
        match &self.kind {
            Kind::Empty => {}
            Kind::Fast(automaton) => scan(automaton, state, bytes, &mut hit),
            Kind::Small(automaton) => scan(automaton, state, bytes, &mut hit),
        }
    }
}

fn scan<A: Automaton>(
    automaton: &A,
    state: &mut StateID,
    bytes: &[u8],
    hit: &mut impl FnMut(usize, usize),
) {
    let mut now = *state;
    for (at, byte) in bytes.iter().enumerate() {
        now = automaton.next_state(Anchored::No, now, *byte);
        if automaton.is_special(now) && automaton.is_match(now) {
            for index in 0..automaton.match_len(now) {
                hit(automaton.match_pattern(now, index).as_usize(), at + 1);
            }
        }
    }
    *state = now;
}

fn build(texts: &[Vec<u8>], sizes: &Sizes) -> Result<Kind, String> {
    if texts.is_empty() {
        return Ok(Kind::Empty);
    }
    let states = texts.iter().map(Vec::len).sum::<usize>() + 4;
    let (small, fast) = (
        states * STATE_BYTES + START_BYTES,
        states * FAST_STATE_BYTES,
    );
    let is_fast = fast <= FAST_BYTES_PER_ENTRY * sizes.limits.table_entries;
    let needed = small + if is_fast { fast } else { 0 };
    if sizes.limits.reserve_bytes != 0 && !has_room(needed + RESERVE) {
        return Err(format!(
            "the contents may take {needed} bytes, and no memory is left"
        ));
    }
    let mut builder = noncontiguous::Builder::new();
    builder.ascii_case_insensitive(true);
    builder
        .match_kind(MatchKind::Standard)
        .dense_depth(1)
        .prefilter(false);
    let nfa = builder.build(texts).map_err(|error| error.to_string())?;
    let made = match is_fast {
        true => dfa::Builder::new()
            .build_from_noncontiguous(&nfa)
            .map(Kind::Fast),
        false => contiguous::Builder::new()
            .build_from_noncontiguous(&nfa)
            .map(Kind::Small),
    };
    made.map_err(|error| error.to_string())
}

// SPDX-License-Identifier: Apache-2.0
//! One automaton over a content of each rule: it says which rules may hold. Its state goes from segment to segment, so
//! it reads each byte of a stream once.
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
/// Bytes of a number in the table of a state of the fast form.
const NUMBER_BYTES: usize = 4;

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
    /// The texts that a run has seen.
    hit: Marks,
    hits: Vec<u16>,
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
        Ok(Self {
            kind,
            hit: Marks::of(rules.len()),
            hits: Vec::new(),
            rules,
        })
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

    /// Continues over bytes; `found` gets each rule that may hold, for each text once.
    pub fn run(&mut self, at: &mut Option<Position>, bytes: &[u8], mut found: impl FnMut(u16)) {
        let Some(Position(state)) = at else {
            return;
        };
        let (hit, hits) = (&mut self.hit, &mut self.hits);
        hits.clear();
        let mut note = |text: usize| {
            if !hit.set(text as u16) {
                hits.push(text as u16);
            }
        };
        match &self.kind {
            Kind::Empty => {}
            Kind::Fast(automaton) => scan(automaton, state, bytes, &mut note),
            Kind::Small(automaton) => scan(automaton, state, bytes, &mut note),
        }
        for text in &self.hits {
            self.hit.clear(*text);
            self.rules[usize::from(*text)]
                .iter()
                .for_each(|rule| found(*rule));
        }
    }
}

/// A mark for each of a few numbers.
#[derive(Debug, Default)]
pub struct Marks(Vec<u64>);

impl Marks {
    /// None is marked; numbers are below `end`.
    pub fn of(end: usize) -> Self {
        Self(vec![0; end.div_ceil(64)])
    }

    pub fn has(&self, number: u16) -> bool {
        self.0[usize::from(number / 64)] >> (number % 64) & 1 != 0
    }

    /// Marks a number; returns whether it was.
    pub fn set(&mut self, number: u16) -> bool {
        let was = self.has(number);
        self.0[usize::from(number / 64)] |= 1 << (number % 64);
        was
    }

    pub fn clear(&mut self, number: u16) {
        self.0[usize::from(number / 64)] &= !(1 << (number % 64));
    }
}

fn scan<A: Automaton>(
    automaton: &A,
    state: &mut StateID,
    bytes: &[u8],
    note: &mut impl FnMut(usize),
) {
    let mut now = *state;
    for byte in bytes {
        now = automaton.next_state(Anchored::No, now, *byte);
        if automaton.is_special(now) && automaton.is_match(now) {
            for index in 0..automaton.match_len(now) {
                note(automaton.match_pattern(now, index).as_usize());
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
    let small = states * STATE_BYTES + START_BYTES;
    let fast = states * classes(texts) * NUMBER_BYTES;
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

/// The most numbers in the table of a state: one for each byte of a text in both cases, and for those between them.
fn classes(texts: &[Vec<u8>]) -> usize {
    let mut seen = [false; 256];
    for byte in texts.iter().flatten() {
        seen[usize::from(byte.to_ascii_lowercase())] = true;
        seen[usize::from(byte.to_ascii_uppercase())] = true;
    }
    let distinct = seen.iter().filter(|seen| **seen).count();
    (2 * distinct + 1).min(256).next_power_of_two()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inspect::rules::{Names, RuleSet};
    use click_core::Limits;

    fn set(texts: &[&str], table_entries: usize) -> RuleSet {
        let rule = |(n, text): (usize, &&str)| {
            format!(
                "alert tcp any any -> any any (content:\"{text}\"; sid:{};)\n",
                n + 1
            )
        };
        let text: String = texts.iter().enumerate().map(rule).collect();
        let limits = Limits {
            table_entries,
            ..Limits::default()
        };
        RuleSet::of(&text, &Names::default(), &Sizes { window: 9, limits }).unwrap()
    }

    #[test]
    fn both_forms_find_each_text_once_across_any_cut() {
        let texts = ["abc", "bc", "ABCD", "bc", "xyzzyxyzzyxyzzyxyzzy-and-more"];
        let data = b"..aBcd abc xyzzyxyzzyxyzzyxyzzy";
        for (entries, is_fast) in [(65_536, true), (50, false)] {
            let mut set = set(&texts, entries);
            assert_eq!(matches!(set.prefilter.kind, Kind::Fast(_)), is_fast);
            for cut in 0..data.len() {
                let mut position = set.prefilter.start();
                let mut found = vec![0; texts.len()];
                for part in [&data[..cut], &data[cut..]] {
                    set.prefilter
                        .run(&mut position, part, |rule| found[usize::from(rule)] += 1);
                }
                assert!(
                    found.iter().all(|count| (1..=2).contains(count)),
                    "{cut}: {found:?}"
                );
            }
        }
    }

    #[test]
    fn a_text_that_stands_everywhere_is_noted_once() {
        let mut set = set(&["a", "aa", "aaa", "aaaa"], 65_536);
        let (mut position, mut count) = (set.prefilter.start(), 0);
        set.prefilter
            .run(&mut position, &[b'a'; 1000], |_| count += 1);
        assert_eq!(count, 4);
    }
}

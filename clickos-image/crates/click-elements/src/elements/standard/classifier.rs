// SPDX-License-Identifier: Apache-2.0
//! Sorts packets by their bytes.
//!
//! # Synopsis
//! `Classifier(PATTERN, ...)`: output n gets the packets whose first matching PATTERN is the n-th, counted from 0; a
//! packet that matches none is dropped. PATTERN is a list of clauses that must all hold: `OFFSET/VALUE` or
//! `OFFSET/VALUE%MASK`, VALUE and MASK in hexadecimal digits (an even number; `?` in VALUE is any), with `!` in front
//! it must not hold; `-` matches everything. A clause behind the end of a packet does not hold.
//! # Ports
//! 1/any, push; as many outputs as patterns.
//! # Handlers
//! * `config` (read, write): the patterns, as many as before.
//! * `program` (read): the patterns as a list of steps, in Click's format.
//! # Example
//! `FromDevice(0) -> c :: Classifier(12/0806 20/0001, 12/0806 20/0002, 12/0800, -);`
use alloc::collections::BTreeMap;

use click_core::text::{split_args, split_words, unquote};

use crate::classify::listing::{self, Fragment, Next};
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "Classifier",
    ports: "1/-",
    processing: "h/h",
    args: &[rest("PATTERN")],
    handlers: &[read_write("config"), read("program")],
    build: |a| {
        let patterns = a.rest().to_vec();
        match compile(&patterns, a.outputs()) {
            Ok(patterns) => Some(Box::new(Classifier::new(patterns))),
            Err(messages) => {
                messages
                    .iter()
                    .for_each(|message| a.error("PATTERN", message));
                None
            }
        }
    },
    ..Class::DEFAULT
};

/// At most eight bytes at an offset, the first in the highest bits.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Part {
    offset: usize,
    bytes: usize,
    value: u64,
    mask: u64,
}

/// All of its parts are as they must be, or (negated) one is not.
struct Clause {
    parts: Vec<Part>,
    negated: bool,
}

/// Offsets beyond any packet are mistakes.
const MAX_OFFSET: usize = 65_535;

type Pattern = Vec<Clause>;

fn compile(patterns: &[String], outputs: usize) -> Result<Vec<Pattern>, Vec<String>> {
    let mut errors = Vec::new();
    if patterns.len() != outputs {
        errors.push(format!("{} patterns for {outputs} outputs", patterns.len()));
    }
    let mut compiled = Vec::new();
    for (index, text) in patterns.iter().enumerate() {
        let words = split_words(&unquote(text));
        if words.is_empty() {
            errors.push(format!("pattern {index}: an empty pattern"));
        }
        let mut pattern = Vec::new();
        for word in words.iter().filter(|w| *w != "-") {
            match clause(word) {
                Some(clause) => pattern.push(clause),
                None => errors.push(format!(
                    "pattern {index}: expected OFFSET/VALUE[%MASK], got \"{word}\""
                )),
            }
        }
        compiled.push(pattern);
    }
    if errors.is_empty() {
        Ok(compiled)
    } else {
        Err(errors)
    }
}

fn clause(word: &str) -> Option<Clause> {
    let (negated, word) = word
        .strip_prefix('!')
        .map_or((false, word), |rest| (true, rest));
    let (offset, rest) = word.split_once('/')?;
    let (value, mask) = rest.split_once('%').unwrap_or((rest, ""));
    let offset = offset.parse().ok().filter(|o| *o <= MAX_OFFSET)?;
    let (value, mut bits) = hex(value)?;
    if !mask.is_empty() {
        let (given, whole) = hex(mask)?;
        if given.len() != value.len() || whole.iter().any(|b| *b != 0xff) {
            return None;
        }
        bits.iter_mut().zip(given).for_each(|(bit, g)| *bit &= g);
    }
    let pieces = value.chunks(8).zip(bits.chunks(8));
    let part = |(at, (value, mask))| Part::new(at, value, mask);
    let parts = (offset..).step_by(8).zip(pieces).map(part).collect();
    Some(Clause { parts, negated })
}

/// Bytes of hexadecimal digits, and a mask without those that are `?`.
fn hex(digits: &str) -> Option<(Vec<u8>, Vec<u8>)> {
    let nibble = |c: u8| match c {
        b'?' => Some((0, 0)),
        _ => Some((u8::try_from(char::from(c).to_digit(16)?).ok()?, 15)),
    };
    let nibbles: Option<Vec<(u8, u8)>> = digits.bytes().map(nibble).collect();
    let nibbles = nibbles.filter(|n| !n.is_empty() && n.len() % 2 == 0)?;
    Some(
        nibbles
            .chunks(2)
            .map(|n| ((n[0].0 << 4) | n[1].0, (n[0].1 << 4) | n[1].1))
            .unzip(),
    )
}

/// Up to eight bytes as a number, the first in its highest bits.
fn upper(bytes: &[u8]) -> u64 {
    let mut whole = [0; 8];
    whole
        .iter_mut()
        .zip(bytes)
        .for_each(|(to, from)| *to = *from);
    u64::from_be_bytes(whole)
}

impl Part {
    fn new(offset: usize, value: &[u8], mask: &[u8]) -> Self {
        let mask_bits = upper(mask);
        Self {
            offset,
            bytes: mask.len(),
            value: upper(value) & mask_bits,
            mask: mask_bits,
        }
    }

    #[inline]
    fn holds(&self, data: &[u8]) -> bool {
        let rest = data.get(self.offset..).unwrap_or_default();
        let found = match rest.first_chunk() {
            Some(whole) => u64::from_be_bytes(*whole),
            None if rest.len() >= self.bytes => upper(rest),
            None => return false,
        };
        found & self.mask == self.value
    }
}

impl Clause {
    /// The clause as tests of four bytes at offsets that are multiples of four.
    fn steps(&self) -> Fragment {
        let mut words: BTreeMap<usize, (u32, u32)> = BTreeMap::new();
        for part in &self.parts {
            let (values, masks) = (part.value.to_be_bytes(), part.mask.to_be_bytes());
            for (n, at) in (part.offset..).take(part.bytes).enumerate() {
                let word = words.entry(at / 4 * 4).or_default();
                let shift = 24 - at % 4 * 8;
                word.0 |= u32::from(values[n]) << shift;
                word.1 |= u32::from(masks[n]) << shift;
            }
        }
        let tests = words.into_iter();
        let mut steps = listing::all(tests.map(|(at, (v, m))| listing::step(at, v, m)));
        if self.negated {
            listing::negate(&mut steps, false);
        }
        steps
    }
}

/// Where to go on behind a decision: the number of one, or of an output beyond this.
const OUTPUT: usize = 1 << (usize::BITS - 1);
const DROP: usize = usize::MAX;

struct Decision {
    part: Part,
    holds: usize,
    fails: usize,
}

/// The patterns as decisions, each behind those it leads to.
struct Decisions {
    list: Vec<Decision>,
    start: usize,
}

impl Decisions {
    fn of(patterns: &[Pattern]) -> Self {
        let mut decisions = Self {
            list: Vec::new(),
            start: DROP,
        };
        for (output, pattern) in patterns.iter().enumerate().rev() {
            let (matches, fails) = (OUTPUT | output, decisions.start);
            let clauses = pattern.iter().rev();
            decisions.start =
                clauses.fold(matches, |holds, clause| decisions.add(clause, holds, fails));
        }
        decisions
    }

    /// Puts a clause in front of where to go on after it.
    fn add(&mut self, clause: &Clause, holds: usize, fails: usize) -> usize {
        let (all, not_all) = match clause.negated {
            true => (fails, holds),
            false => (holds, fails),
        };
        let parts = clause.parts.iter().rev();
        parts.fold(all, |holds, part| {
            let decision = Decision {
                part: *part,
                holds: self.skip(holds, part, |same| same.holds),
                fails: self.skip(not_all, part, |same| same.fails),
            };
            self.list.push(decision);
            self.list.len() - 1
        })
    }

    /// Where to go on from `at` if the outcome for a part is known.
    fn skip(&self, mut at: usize, part: &Part, outcome: impl Fn(&Decision) -> usize) -> usize {
        while let Some(decision) = self.list.get(at).filter(|d| d.part == *part) {
            at = outcome(decision);
        }
        at
    }

    /// The output for these bytes.
    #[inline]
    fn output(&self, data: &[u8]) -> usize {
        let mut at = self.start;
        while let Some(decision) = self.list.get(at) {
            at = match decision.part.holds(data) {
                true => decision.holds,
                false => decision.fails,
            };
        }
        if at == DROP { DROPPED } else { at & !OUTPUT }
    }
}

struct Classifier {
    patterns: Vec<Pattern>,
    decisions: Decisions,
}

impl Classifier {
    fn new(patterns: Vec<Pattern>) -> Self {
        Self {
            decisions: Decisions::of(&patterns),
            patterns,
        }
    }
}

impl InPlace for Classifier {
    const USE: Use = Use::Reads;

    #[inline]
    fn way(&mut self, _ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        self.decisions.output(packet.data())
    }
}

impl Element for Classifier {
    in_place!();

    fn read(&self, _view: &View<'_>, handler: &str, _param: &str) -> Text {
        match handler {
            "program" => text(program(&self.patterns)),
            _ => undeclared(handler),
        }
    }

    fn write(&self, view: &View<'_>, handler: &str, value: &str) -> Result<Change, HandlerError> {
        match handler {
            "config" => {
                let compiled = compile(&split_args(value), view.ports.1);
                let patterns =
                    compiled.map_err(|messages| HandlerError::rejected(messages.join("\n")))?;
                Ok(Change::of(move |me: &mut Self, _| {
                    *me = Self::new(patterns)
                }))
            }
            _ => undeclared(handler),
        }
    }
}

/// The patterns as a list of steps.
fn program(patterns: &[Pattern]) -> String {
    let steps = |(output, pattern): (usize, &Pattern)| {
        let clauses = pattern.iter().map(Clause::steps);
        let mut steps = listing::all(clauses);
        listing::redirect(&mut steps, Next::Success, Next::Output(output));
        steps
    };
    let rules = patterns.iter().enumerate().map(steps).collect();
    listing::at_once(rules).text()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn matches(pattern: &str, data: &[u8]) -> bool {
        let patterns = compile(&[pattern.to_string()], 1).unwrap();
        Decisions::of(&patterns).output(data) == 0
    }

    #[test]
    fn clauses() {
        assert!(matches("0/1234", &[0x12, 0x34]));
        assert!(!matches("0/1234", &[0x12]));
        assert!(matches("1/0?%f0", &[9, 0x0f]));
        assert!(matches("!0/12 -", &[]));
        assert!(matches("0/?2", &[0xf2]));
        for wrong in [
            "0/123", "x/12", "0/12%1", "0/zz", "0/", "99999/00", "12", "",
        ] {
            assert!(compile(&[wrong.to_string()], 1).is_err(), "{wrong}");
        }
    }

    /// Whether a pattern matches, as it is written: all clauses hold.
    fn is_match(pattern: &Pattern, data: &[u8]) -> bool {
        let holds = |c: &Clause| c.parts.iter().all(|p| p.holds(data)) != c.negated;
        pattern.iter().all(holds)
    }

    proptest! {
        #[test]
        fn decisions_find_the_first_pattern(
            patterns in prop::collection::vec(
                prop::collection::vec("!?[0-9]/(0[01]|0\\?|(00){9}01)", 1..4), 0..6),
            packets in prop::collection::vec(prop::collection::vec(0u8..2, 0..24), 20),
        ) {
            let texts: Vec<_> = patterns.iter().map(|clauses| clauses.join(" ")).collect();
            let patterns = compile(&texts, texts.len()).unwrap();
            let decisions = Decisions::of(&patterns);
            for data in packets {
                let first = patterns.iter().position(|pattern| is_match(pattern, &data));
                prop_assert_eq!(decisions.output(&data), first.unwrap_or(DROPPED));
            }
        }
    }
}

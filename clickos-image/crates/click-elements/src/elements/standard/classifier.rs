// SPDX-License-Identifier: Apache-2.0
//! Sorts packets by their bytes.
//!
//! # Synopsis
//! `Classifier(PATTERN, ...)`: output n gets the packets whose first matching PATTERN is the n-th, counted from 0; a
//! packet that matches none is dropped. PATTERN is a list of clauses that must all hold: `OFFSET/VALUE` or
//! `OFFSET/VALUE%MASK`, VALUE and MASK in hexadecimal digits (an even number; `?` in VALUE is any), with `!` in front
//! it must not hold; `-` matches everything. A clause after the end of a packet does not hold.
//! # Ports
//! 1/any, push; as many outputs as patterns.
//! # Handlers
//! * `config` (read, write): the patterns, as many as before.
//! * `program` (read): the patterns as a list of steps, in Click's format.
//! # Differences from Click
//! `program` shows lists of more than 2,048 steps as they are written.
//! # Example
//! `FromDevice(0) -> c :: Classifier(12/0806 20/0001, 12/0806 20/0002, 12/0800, -);`
use alloc::collections::BTreeMap;

use click_core::text::{split_args, split_words, unquote};

use crate::classify::listing::{self, Fragment, Next};
use crate::lanes::{LANES, LaneSet, members};
use crate::outputs::distribute;
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "Classifier",
    ports: "1/-",
    processing: "h/h",
    args: &[rest("PATTERN")],
    handlers: &[
        read_write(
            "config",
            |_: &mut Classifier, view| text(view.config()),
            Classifier::set_config,
        ),
        read("program", |me, _| text(program(&me.patterns))),
    ],
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

/// At most eight bytes at an offset, the first in the lowest bits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
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

/// Bytes of all patterns of one Classifier: each byte takes up to 60 bytes while they are compiled.
const PATTERN_BYTES: usize = 1 << 16;

type Pattern = Vec<Clause>;

fn compile(patterns: &[String], outputs: usize) -> Result<Vec<Pattern>, Vec<String>> {
    let mut errors = Vec::new();
    let bytes = patterns.iter().map(String::len).sum::<usize>();
    if bytes > PATTERN_BYTES {
        let message = format!("patterns of {bytes} bytes, the limit is {PATTERN_BYTES}");
        return Err(vec![message]);
    }
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

/// Up to eight bytes as a number, the first in its lowest bits.
fn number(bytes: &[u8]) -> u64 {
    let mut whole = [0; 8];
    whole
        .iter_mut()
        .zip(bytes)
        .for_each(|(to, from)| *to = *from);
    u64::from_le_bytes(whole)
}

impl Part {
    fn new(offset: usize, value: &[u8], mask: &[u8]) -> Self {
        let mask_bits = number(mask);
        Self {
            offset,
            bytes: mask.len(),
            value: number(value) & mask_bits,
            mask: mask_bits,
        }
    }

    #[inline]
    fn fits(&self, word: u64) -> bool {
        word & self.mask == self.value
    }

    /// The same for a packet that ends before eight bytes are there.
    #[cold]
    fn holds_at_end(&self, data: &[u8]) -> bool {
        let rest = data.get(self.offset..).filter(|r| r.len() >= self.bytes);
        rest.is_some_and(|rest| number(rest) & self.mask == self.value)
    }
}

impl Clause {
    /// The clause as tests of four bytes at offsets that are multiples of four.
    fn steps(&self) -> Fragment {
        let mut words: BTreeMap<usize, (u32, u32)> = BTreeMap::new();
        for part in &self.parts {
            let (values, masks) = (part.value.to_le_bytes(), part.mask.to_le_bytes());
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

/// A clause, its parts by their numbers.
struct Test {
    parts: Vec<usize>,
    negated: bool,
}

/// The bytes of packets at an offset, side by side, for all parts that begin there.
struct Column {
    /// Where, if it is known.
    offset: Option<usize>,
    words: [u64; LANES],
    /// The packets that end before; what is here of them means nothing.
    short: LaneSet,
}

impl Column {
    const NONE: Self = Self {
        offset: None,
        words: [0; LANES],
        short: 0,
    };

    fn fill(&mut self, offset: usize, packets: &[Packet]) {
        let end = offset + size_of::<u64>();
        (self.offset, self.short) = (Some(offset), 0);
        for (n, (packet, word)) in packets.iter().zip(&mut self.words).enumerate() {
            match packet.data().get(offset..end).and_then(<[u8]>::first_chunk) {
                Some(bytes) => *word = u64::from_le_bytes(*bytes),
                None => self.short |= 1 << n,
            }
        }
    }

    /// The packets in which a part is as it must be.
    fn those(&mut self, part: &Part, packets: &[Packet]) -> LaneSet {
        if self.offset != Some(part.offset) {
            self.fill(part.offset, packets);
        }
        let set = set_of(&self.words[..packets.len()], |word| part.fits(word));
        members(self.short).fold(set & !self.short, |set, n| {
            set | LaneSet::from(part.holds_at_end(packets[n].data())) << n
        })
    }
}

/// The patterns, made ready for batches: a part that several of them ask for is looked at once in all packets, and
/// only if some packet's output depends on it.
struct Sorter {
    parts: Vec<Part>,
    /// In which packets each part is as it must be, if that is known.
    known: Vec<Option<LaneSet>>,
    patterns: Vec<Vec<Test>>,
    /// The outputs of a batch's packets.
    column: Column,
}

/// The numbers of those that are as they must be. The first one is looked at first: what was just copied takes a
/// while to be there.
#[inline]
fn set_of(words: &[u64], holds: impl Fn(u64) -> bool) -> LaneSet {
    let unused = LANES - words.len();
    let top = |word: &u64| LaneSet::from(holds(*word)) << (LANES - 1);
    words.iter().fold(0, |set, word| set >> 1 | top(word)) >> unused
}

impl Sorter {
    fn of(patterns: &[Pattern]) -> Self {
        let (mut parts, mut numbers) = (Vec::new(), BTreeMap::new());
        let mut number = |part: &Part| {
            *numbers.entry(*part).or_insert_with(|| {
                parts.push(*part);
                parts.len() - 1
            })
        };
        let mut test = |clause: &Clause| Test {
            parts: clause.parts.iter().map(&mut number).collect(),
            negated: clause.negated,
        };
        let mut tests = |pattern: &Pattern| pattern.iter().map(&mut test).collect();
        Self {
            patterns: patterns.iter().map(&mut tests).collect(),
            known: vec![None; parts.len()],
            parts,
            column: Column::NONE,
        }
    }

    /// Appends the output of each packet of a batch, or `DROPPED`.
    fn sort(&mut self, batch: &Batch, ways: &mut Vec<usize>) {
        for packets in batch.iter().as_slice().chunks(LANES) {
            self.sort_some(packets, ways);
        }
    }

    fn sort_some(&mut self, packets: &[Packet], ways: &mut Vec<usize>) {
        self.known.fill(None);
        self.column.offset = None;
        let begin = ways.len();
        ways.resize(begin + packets.len(), DROPPED);
        let all = LaneSet::MAX >> (LANES - packets.len());
        let mut open = all;
        for output in 0..self.patterns.len() {
            let found = self.narrow(open, output, packets);
            match found == all {
                true => ways[begin..].fill(output),
                false => members(found).for_each(|n| ways[begin + n] = output),
            }
            open &= !found;
            if open == 0 {
                return;
            }
        }
    }

    /// The rest of a set of packets after a pattern.
    fn narrow(&mut self, set: LaneSet, pattern: usize, packets: &[Packet]) -> LaneSet {
        let (parts, known, column) = (&self.parts, &mut self.known, &mut self.column);
        let mut look = |left: LaneSet, part: &usize| match left {
            0 => 0,
            _ => left & *known[*part].get_or_insert_with(|| column.those(&parts[*part], packets)),
        };
        self.patterns[pattern].iter().fold(set, |set, test| {
            let held = test.parts.iter().fold(set, &mut look);
            if test.negated { set & !held } else { held }
        })
    }
}

struct Classifier {
    patterns: Vec<Pattern>,
    sorter: Sorter,
}

impl Classifier {
    fn new(patterns: Vec<Pattern>) -> Self {
        Self {
            sorter: Sorter::of(&patterns),
            patterns,
        }
    }
}

impl Classifier {
    fn set_config(&self, view: &View<'_>, value: &str) -> Result<Change, HandlerError> {
        let compiled = compile(&split_args(value), view.ports().1);
        let patterns = compiled.map_err(|messages| HandlerError::rejected(messages.join("\n")))?;
        Ok(Change::of(move |me: &mut Self, _| {
            me.sorter = Sorter::of(&patterns);
            me.patterns = patterns;
        }))
    }
}

impl Element for Classifier {
    fn is_plain(&self) -> bool {
        true
    }

    fn push(&mut self, ctx: &mut Context<'_>, _port: usize, batch: Batch) {
        let sorter = &mut self.sorter;
        distribute(ctx, batch, |_, batch, ways| sorter.sort(batch, ways));
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
    use click_core::PacketPool;
    use proptest::prelude::*;

    fn outputs(patterns: &[Pattern], packets: &[&[u8]]) -> Vec<usize> {
        let mut pool = PacketPool::new(packets.len());
        let mut batch = Batch::new();
        batch.extend(packets.iter().filter_map(|data| pool.packet_from(data)));
        let mut ways = Vec::new();
        Sorter::of(patterns).sort(&batch, &mut ways);
        ways
    }

    fn matches(pattern: &str, data: &[u8]) -> bool {
        let patterns = compile(&[pattern.to_string()], 1).unwrap();
        outputs(&patterns, &[data]) == [0]
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

    /// True if a part is as it must be, byte by byte.
    fn is_held(part: &Part, data: &[u8]) -> bool {
        let (value, mask) = (part.value.to_le_bytes(), part.mask.to_le_bytes());
        let mut bytes = (0..part.bytes).map(|n| (data.get(part.offset + n), n));
        bytes.all(|(byte, n)| byte.is_some_and(|byte| byte & mask[n] == value[n]))
    }

    /// True if a pattern matches, as it is written: all clauses hold.
    fn is_match(pattern: &Pattern, data: &[u8]) -> bool {
        let holds = |c: &Clause| c.parts.iter().all(|p| is_held(p, data)) != c.negated;
        pattern.iter().all(holds)
    }

    proptest! {
        #[test]
        fn every_packet_gets_its_first_pattern(
            patterns in prop::collection::vec(
                prop::collection::vec("!?([0-9]|3[0-9])/(0[01]|0\\?|(00){9}01)", 1..4), 0..6),
            packets in prop::collection::vec(prop::collection::vec(0u8..2, 0..50), 1..40),
        ) {
            let texts: Vec<_> = patterns.iter().map(|clauses| clauses.join(" ")).collect();
            let patterns = compile(&texts, texts.len()).unwrap();
            let packets: Vec<&[u8]> = packets.iter().map(Vec::as_slice).collect();
            let first = |data: &&[u8]| {
                let found = patterns.iter().position(|pattern| is_match(pattern, data));
                found.unwrap_or(DROPPED)
            };
            let expected: Vec<_> = packets.iter().map(first).collect();
            prop_assert_eq!(outputs(&patterns, &packets), expected);
        }
    }
}

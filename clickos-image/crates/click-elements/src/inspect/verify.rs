// SPDX-License-Identifier: Apache-2.0
//! Whether a rule's contents stand where it says.
//!
//! For each content all places are found, and those from which the next one can follow are kept. So the work grows with
//! the contents and with the bytes, and never with the ways to combine them.
use core::ops::Range;

use memchr::memmem;

use super::pcre::{self, Memory, Pcre};
use super::rules::{Content, Part, Rule};
use crate::prelude::*;

/// Steps of work that a byte of an expression counts for.
const PCRE_STEPS: usize = 8;
/// Steps of a search besides its bytes.
const SEARCH_STEPS: usize = 32;

/// The work that is left for a flow.
#[derive(Clone, Copy, Debug)]
pub struct Credit(u32);

impl Credit {
    const MAX: u32 = 1 << 22;
    const PER_PACKET: u32 = 32 << 10;
    const PER_BYTE: u32 = 128;

    pub const fn full() -> Self {
        Self(Self::MAX)
    }

    /// That of a packet on its own.
    pub const fn of_datagram() -> Self {
        Self(Self::MAX / 16)
    }

    /// Adds what a packet with this many bytes may cost.
    pub fn earn(&mut self, bytes: usize) {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        let more = Self::PER_PACKET.saturating_add(bytes.saturating_mul(Self::PER_BYTE));
        self.0 = self.0.saturating_add(more).min(Self::MAX);
    }

    /// Takes some steps; false if they are not left.
    pub fn spend(&mut self, steps: usize) -> bool {
        let left = u32::try_from(steps)
            .ok()
            .and_then(|steps| self.0.checked_sub(steps));
        self.0 = left.unwrap_or(0);
        left.is_some()
    }
}

/// The bytes in which rules look, and where they begin in their stream.
pub struct Hay<'a> {
    pub bytes: &'a [u8],
    pub start: u64,
}

/// What a rule is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    Yes,
    /// It fails at this part.
    No(usize),
    /// It is not known, since it took too much.
    TooMuch,
}

/// Memory of searches, which is used again.
#[derive(Default)]
pub struct Scratch {
    /// Where the text before ends, and where the next one does.
    ends: Vec<u32>,
    next: Vec<u32>,
    /// The bytes without upper case.
    lower: Vec<u8>,
    pub pcre: Memory,
}

impl Scratch {
    /// The next search looks in other bytes.
    pub fn forget(&mut self) {
        self.lower.clear();
    }

    /// Verifies the rule with a number, whose places count from `origin`.
    pub fn verify(
        &mut self,
        rule: (usize, &Rule),
        hay: &Hay<'_>,
        origin: u64,
        credit: &mut Credit,
    ) -> Found {
        let (number, rule) = rule;
        let origin = hay_place(hay, origin);
        self.ends.clear();
        self.ends
            .push(origin.clamp(0, hay.bytes.len() as i64) as u32);
        for (at, part) in rule.parts.iter().enumerate() {
            let holds = match part {
                Part::Content(content) => self.content(content, hay, origin, credit),
                Part::Pcre(pcre) => self.expression((number * 16 + at, pcre), hay, origin, credit),
            };
            match holds {
                Some(true) => {}
                Some(false) => return Found::No(at),
                None => return Found::TooMuch,
            }
        }
        Found::Yes
    }

    /// True if a text stands in bytes from a place on.
    pub fn occurs(
        &mut self,
        content: &Content,
        bytes: &[u8],
        from: usize,
        credit: &mut Credit,
    ) -> Option<bool> {
        let range = from..bytes.len();
        let found = self.places(content, bytes, range, credit, true);
        found.then_some(!self.next.is_empty())
    }

    /// Whether a content stands where it has to; `None` if there is no work left.
    fn content(
        &mut self,
        content: &Content,
        hay: &Hay<'_>,
        origin: i64,
        credit: &mut Credit,
    ) -> Option<bool> {
        let length = hay.bytes.len() as i64;
        let range = match (content.is_relative(), self.ends.first()) {
            (true, Some(first)) => {
                i64::from(*first) + i64::from(content.distance.unwrap_or(0))..length
            }
            (true, None) => return Some(false),
            (false, _) if content.is_placed() => placed(content, origin),
            (false, _) => 0..length,
        };
        let range = range.start.clamp(0, length) as usize..range.end.clamp(0, length) as usize;
        let only_one = content.is_negated && !content.is_relative();
        if !self.places(content, hay.bytes, range, credit, only_one) {
            return None;
        }
        Some(match (content.is_negated, content.is_relative()) {
            (true, false) => self.next.is_empty(),
            (false, false) => {
                core::mem::swap(&mut self.ends, &mut self.next);
                !self.ends.is_empty()
            }
            (false, true) => self.follow(content),
            (true, true) => self.not_followed(content),
        })
    }

    /// Finds where a text ends; false if there is no work left.
    fn places(
        &mut self,
        content: &Content,
        bytes: &[u8],
        range: Range<usize>,
        credit: &mut Credit,
        only_one: bool,
    ) -> bool {
        self.next.clear();
        if !credit.spend(SEARCH_STEPS + range.len()) {
            return false;
        }
        let (needle, mut hay) = (&content.bytes[..], bytes);
        if content.no_case {
            if self.lower.len() != bytes.len() {
                self.lower.clear();
                self.lower.extend(bytes.iter().map(u8::to_ascii_lowercase));
            }
            hay = &self.lower;
        }
        let finder = memmem::Finder::new(needle);
        let mut at = range.start;
        while let Some(found) = hay.get(at..range.end).and_then(|rest| finder.find(rest)) {
            self.next.push((at + found + needle.len()) as u32);
            at += found + 1;
            if only_one {
                break;
            }
            if !credit.spend(needle.len()) {
                return false;
            }
        }
        true
    }

    /// Keeps the places that follow one of those before.
    fn follow(&mut self, content: &Content) -> bool {
        let (length, distance) = (
            content.bytes.len() as i64,
            i64::from(content.distance.unwrap_or(0)),
        );
        let (ends, mut first) = (&self.ends, 0);
        self.next.retain(|end| {
            let end = i64::from(*end);
            let last = end - length - distance;
            let earliest = content
                .within
                .map_or(i64::MIN, |within| end - distance - i64::from(within));
            while ends
                .get(first)
                .is_some_and(|before| i64::from(*before) < earliest)
            {
                first += 1;
            }
            ends.get(first)
                .is_some_and(|before| i64::from(*before) <= last)
        });
        core::mem::swap(&mut self.ends, &mut self.next);
        !self.ends.is_empty()
    }

    /// Keeps those before that this text does not follow.
    fn not_followed(&mut self, content: &Content) -> bool {
        let (length, distance) = (
            content.bytes.len() as i64,
            i64::from(content.distance.unwrap_or(0)),
        );
        let (places, mut first) = (&self.next, 0);
        self.ends.retain(|before| {
            let start = i64::from(*before) + distance;
            while places
                .get(first)
                .is_some_and(|end| i64::from(*end) - length < start)
            {
                first += 1;
            }
            let limit = content
                .within
                .map_or(i64::MAX, |within| start + i64::from(within));
            places.get(first).is_none_or(|end| i64::from(*end) > limit)
        });
        !self.ends.is_empty()
    }

    /// Whether an expression is there; `None` if there is no work left.
    fn expression(
        &mut self,
        pcre: (usize, &Pcre),
        hay: &Hay<'_>,
        origin: i64,
        credit: &mut Credit,
    ) -> Option<bool> {
        let (number, pcre) = pcre;
        let starts: &[u32] = match (pcre.is_relative, pcre.is_anchored) {
            (true, true) => &self.ends,
            (true, false) => &self.ends[..self.ends.len().min(1)],
            (false, true) if origin < 0 => &[],
            (false, true) => &[origin.min(u32::MAX.into()) as u32],
            (false, false) => &[0],
        };
        let mut is_there = false;
        for start in starts {
            let from = *start as usize;
            let bytes = hay.bytes.len().saturating_sub(from);
            if !credit.spend((SEARCH_STEPS + bytes) * PCRE_STEPS) {
                return None;
            }
            match pcre.find(&mut self.pcre, number, hay.bytes, from) {
                pcre::Found::Yes => {
                    is_there = true;
                    break;
                }
                pcre::Found::No => {}
                pcre::Found::TooMuch => return None,
            }
        }
        Some(is_there != pcre.is_negated)
    }
}

/// Where the places of a rule begin, which may be in front of the bytes.
fn hay_place(hay: &Hay<'_>, origin: u64) -> i64 {
    origin.wrapping_sub(hay.start) as i64
}

/// Where a content may stand that counts from the start.
fn placed(content: &Content, origin: i64) -> Range<i64> {
    let start = origin + i64::from(content.offset.unwrap_or(0));
    start
        ..content
            .depth
            .map_or(i64::MAX, |depth| start + i64::from(depth))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inspect::rules::{Names, RuleSet, Sizes};
    use click_core::Limits;

    fn set(options: &str) -> RuleSet {
        let sizes = Sizes {
            window: 2048,
            limits: Limits::default(),
        };
        let text = format!("alert tcp any any -> any any ({options} sid:1;)");
        RuleSet::of(&text, &Names::default(), &sizes).unwrap()
    }

    fn found(options: &str, bytes: &str) -> Found {
        let hay = Hay {
            bytes: bytes.as_bytes(),
            start: 100,
        };
        let set = set(options);
        Scratch::default().verify((0, &set.rules[0]), &hay, 100, &mut Credit::full())
    }

    #[test]
    fn places_are_as_in_the_manual() {
        for (options, hits, misses) in [
            (r#"content:"bc";"#, "abc", "abd"),
            (r#"content:"BC"; nocase;"#, "aBc", "abx"),
            (r#"content:"bc"; offset:1;"#, "abc", "bcx"),
            (r#"content:"bc"; depth:3;"#, "abc", "xabc"),
            (r#"content:"bc"; offset:1; depth:2;"#, "abc", "xabc"),
            (r#"content:"ab"; startswith;"#, "abc", "xab"),
            (
                r#"content:"ab"; content:"cd"; distance:0;"#,
                "cdabcd",
                "cdab",
            ),
            (
                r#"content:"ab"; content:"cd"; distance:1;"#,
                "abxcd",
                "abcd",
            ),
            (
                r#"content:"ab"; content:"cd"; distance:-2; within:2;"#,
                "cdxab ab",
                "zz",
            ),
            (
                r#"content:"ab"; content:"cd"; within:3;"#,
                "abxcd ab.cd",
                "abxxcd",
            ),
            (
                r#"content:"ab"; content:"cd"; distance:1; within:3;"#,
                "abxxcd",
                "abcd abxxxcd",
            ),
            (r#"content:"ab"; content:!"cd";"#, "abce", "abcd"),
            (
                r#"content:"ab"; content:!"cd"; within:4;"#,
                "abcd abxx",
                "abcd ab.cd",
            ),
            (r#"content:"ab"; pcre:"/c\d/";"#, "c1ab", "cab"),
            (r#"content:"ab"; pcre:"/^c\d/R";"#, "ababc1", "ab c1"),
            (r#"content:"ab"; pcre:!"/c\d/R";"#, "c1ab", "abc1"),
            (r#"content:"ab"; pcre:"/^c/";"#, "cab", "abc"),
        ] {
            if !options.contains("-2") {
                assert_eq!(found(options, hits), Found::Yes, "{options} {hits}");
            }
            assert!(
                matches!(found(options, misses), Found::No(_)),
                "{options} {misses}"
            );
        }
        // a text that overlaps the one before
        let options = r#"content:"abc"; content:"bcd"; distance:-2; within:3;"#;
        assert_eq!(found(options, "xabcd"), Found::Yes);
        assert_eq!(found(options, "abc bcd"), Found::No(1));
    }

    #[test]
    fn each_way_to_combine_contents_is_found() {
        // the first of two does not lead on
        let options = r#"content:"a"; content:"b"; within:1; content:"c"; within:1;"#;
        assert_eq!(found(options, "abx abc"), Found::Yes);
        assert_eq!(found(options, "ab abx"), Found::No(2));
    }

    #[test]
    fn work_grows_with_bytes_and_contents_only() {
        let parts: String = (0..15).map(|_| r#"content:"a"; distance:0; "#).collect();
        let set = set(&format!("{parts} content:\"b\"; distance:0;"));
        let hay = Hay {
            bytes: &[b'a'; 4096],
            start: 0,
        };
        let mut credit = Credit::full();
        let found = Scratch::default().verify((0, &set.rules[0]), &hay, 0, &mut credit);
        assert_eq!(found, Found::No(15));
        let spent = Credit::MAX - credit.0;
        assert!(spent < 16 * 2 * 4200, "{spent}");
    }

    #[test]
    fn without_credit_nobody_knows() {
        let set = set(r#"content:"aaaaaaaa"; content:"x"; distance:0;"#);
        let hay = Hay {
            bytes: &[b'a'; 2048],
            start: 0,
        };
        let (mut credit, mut scratch) = (Credit(10_000), Scratch::default());
        let found = scratch.verify((0, &set.rules[0]), &hay, 0, &mut credit);
        assert_eq!(found, Found::TooMuch);
        credit.earn(1000);
        assert_eq!(credit.0, Credit::PER_PACKET + 1000 * Credit::PER_BYTE);
    }
}

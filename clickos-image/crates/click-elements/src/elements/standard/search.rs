// SPDX-License-Identifier: Apache-2.0
//! Strips the head of packets up to a text that is found in them.
//!
//! # Synopsis
//! `Search(PATTERN [, STRIP_AFTER, ANNO, SET_ANNO])`: what is in front of the first PATTERN is stripped, with PATTERN
//! itself unless STRIP_AFTER (default true) is false. The number of bytes is added to the annotation of 2 bytes at ANNO
//! (default 16) unless SET_ANNO (default true) is false; `UnstripAnno` undoes it.
//! # Ports
//! 1/1-2, push. Packets without PATTERN leave by output 1 as they are, or are dropped.
//! # Handlers
//! None of its own.
//! # Differences from Click
//! This element, UnstripAnno, StringMatcher and RegexClassifier are FastClick's, as are the names
//! AverageCounterMP, AverageCounterIMP and CounterMP; FastClick's further handlers of
//! AverageCounter and Counter are missing. In RegexClassifier (group `regex`) a byte is a
//! character, Unicode classes are missing, and MAX_REGEX_MEMORY counts for each pattern.
//! # Example
//! `s :: Search("\r\n\r\n") -> Print(BODY) -> UnstripAnno -> ...; s[1] -> Discard;`
use memchr::memmem::Finder;

use crate::numbers::WordAnno;
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "Search",
    ports: "1/1-2",
    processing: "h/h",
    args: &[
        mandatory("PATTERN"),
        keyword("STRIP_AFTER"),
        keyword("ANNO"),
        keyword("SET_ANNO"),
    ],
    build,
    ..Class::DEFAULT
};

fn build(a: &mut Args<'_>) -> Built {
    let (pattern, after) = (a.need::<Bytes>("PATTERN"), a.or("STRIP_AFTER", true));
    let (anno, set_anno) = (a.or("ANNO", WordAnno::DEFAULT), a.or("SET_ANNO", true));
    let pattern = pattern?.0;
    if pattern.is_empty() {
        a.error("PATTERN", "an empty text is everywhere");
        return None;
    }
    let (after, set_anno) = (after?, set_anno?);
    Some(Box::new(Search {
        behind: if after { pattern.len() } else { 0 },
        finder: Finder::new(&pattern).into_owned(),
        anno: anno?.0,
        set_anno,
    }))
}

struct Search {
    finder: Finder<'static>,
    /// Bytes that are stripped from where the pattern begins.
    behind: usize,
    anno: usize,
    set_anno: bool,
}

impl InPlace for Search {
    const USE: Use = Use::Reads;

    fn output_port(&mut self, _ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        let Some(at) = self.finder.find(packet.data()) else {
            return 1;
        };
        let length = at + self.behind;
        packet.pull(length);
        if self.set_anno {
            let length = u16::try_from(length).unwrap_or(u16::MAX);
            let sum = packet.anno().u16(self.anno).saturating_add(length);
            packet.anno_mut().set_u16(self.anno, sum);
        }
        0
    }
}

impl Element for Search {
    in_place!(plain);
}

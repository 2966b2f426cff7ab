// SPDX-License-Identifier: Apache-2.0
//! Classifies packets by regular expressions.
//!
//! # Synopsis
//! `RegexClassifier(PATTERN, ... [, PAYLOAD_ONLY, MAX_REGEX_MEMORY])`: a packet leaves by the output of the first PATTERN
//! found anywhere in its bytes; one for each output. A byte is a character, `.` is any but a line feed. With PAYLOAD_ONLY
//! (default false) bytes are looked at from the marked transport header on. A pattern, and what is remembered of its
//! searches, take at most MAX_REGEX_MEMORY bytes each (default 8388608).
//! # Ports
//! 1/any, push. Packets without a pattern are dropped.
//! # Handlers
//! * `pattern0` ... (read, write): the pattern of that output. `payload_only` (read, write): PAYLOAD_ONLY.
//! # Differences from Click
//! See `Search`.
//! # Example
//! `... -> ids :: RegexClassifier("attack[0-9]+", "."); ids[0] -> Print(ALERT) -> Discard; ids[1] -> ...`
use click_core::memory;
use click_core::text::unquote;
use regex_automata::meta::{BuildError, Cache, Regex};
use regex_automata::util::syntax;
use regex_automata::{Input, MatchKind, PatternSet};

use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "RegexClassifier",
    ports: "1/-",
    processing: "h/h",
    args: &[
        rest("PATTERN"),
        keyword("PAYLOAD_ONLY"),
        keyword("MAX_REGEX_MEMORY"),
    ],
    handlers: &[read_write(
        "payload_only",
        |me: &mut RegexClassifier, _| text(me.payload_only),
        set!(|me, only, _| me.payload_only = only),
    )],
    families: &[Family::PerOutput(&[read_write(
        "pattern",
        |me: &mut RegexClassifier, view| text(&me.texts[view.port]),
        RegexClassifier::set_pattern,
    )])],
    build,
    ..Class::DEFAULT
};

fn build(a: &mut Args<'_>) -> Built {
    let (payload_only, memory) = (
        a.or("PAYLOAD_ONLY", false),
        a.or("MAX_REGEX_MEMORY", 8 << 20),
    );
    let texts: Vec<String> = a.rest().iter().map(|text| unquote(text)).collect();
    if texts.len() != a.outputs() {
        let (given, outputs) = (texts.len(), a.outputs());
        let message = format!("{given} patterns for {outputs} outputs");
        a.error("PATTERN", message);
    }
    let (payload_only, memory) = (payload_only?, memory?);
    match Search::of(&texts, memory, a.environment().limits.reserve_bytes) {
        Ok(search) => Some(Box::new(RegexClassifier {
            texts,
            memory,
            payload_only,
            search,
        })),
        Err(message) => {
            a.error("PATTERN", message);
            None
        }
    }
}

/// Most patterns that the element tries one after the other, each by its fastest method.
const FEW: usize = 8;

/// Bytes that a byte of a pattern takes while it is parsed.
const PARSING: usize = 512;

/// Bytes for a compiled pattern and for the cache of its search, with `reserve` bytes left where
/// memory is short.
fn shares(bytes: usize, reserve: usize, patterns: usize) -> [usize; 2] {
    match reserve {
        0 => [bytes; 2],
        _ => {
            let part = memory::part_of(bytes, reserve);
            [part, part / (patterns + 1)]
        }
    }
}

/// How patterns are looked for.
enum Search {
    InTurn(Vec<(Regex, Cache)>),
    /// All of them in one pass.
    AtOnce(Box<(Regex, Cache, PatternSet)>),
}

fn compile(
    texts: &[String],
    [memory, cache]: [usize; 2],
) -> Result<(Regex, Cache), Box<BuildError>> {
    let config = Regex::config()
        .match_kind(if texts.len() > 1 {
            MatchKind::All
        } else {
            MatchKind::LeftmostFirst
        })
        .utf8_empty(false)
        .nfa_size_limit(Some(memory))
        .hybrid_cache_capacity(cache)
        // without a number the library reads the machine's processors from a file
        .pool_capacity(1);
    let syntax = syntax::Config::new().unicode(false).utf8(false);
    let regex = Regex::builder()
        .configure(config)
        .syntax(syntax)
        .build_many(texts)?;
    let cache = regex.create_cache();
    Ok((regex, cache))
}

impl Search {
    /// # Errors The wrong pattern, and the reason.
    fn of(texts: &[String], bytes: usize, reserve: usize) -> Result<Self, String> {
        let shares = || shares(bytes, reserve, texts.len());
        let one = |(index, text): (usize, &String)| {
            if !memory::has_room(reserve + text.len().saturating_mul(PARSING)) {
                return Err(format!(
                    "pattern {index} is too long for the memory that is left"
                ));
            }
            compile(core::slice::from_ref(text), shares()).map_err(|e| told(index, &e))
        };
        let each = texts
            .iter()
            .enumerate()
            .map(one)
            .collect::<Result<Vec<_>, _>>()?;
        if texts.len() <= FEW {
            return Ok(Self::InTurn(each));
        }
        let (regex, cache) = compile(texts, shares()).map_err(|e| told(texts.len() - 1, &e))?;
        let found = PatternSet::new(regex.pattern_len());
        Ok(Self::AtOnce(Box::new((regex, cache, found))))
    }

    /// The first pattern that is found.
    fn first(&mut self, bytes: &[u8]) -> Option<usize> {
        let input = Input::new(bytes).earliest(true);
        match self {
            Self::InTurn(each) => each
                .iter_mut()
                .position(|(regex, cache)| regex.search_half_with(cache, &input).is_some()),
            Self::AtOnce(all) => {
                let (regex, cache, found) = &mut **all;
                found.clear();
                regex.which_overlapping_matches_with(cache, &Input::new(bytes), found);
                found.iter().next().map(|pattern| pattern.as_usize())
            }
        }
    }
}

fn told(index: usize, error: &BuildError) -> String {
    match (error.syntax_error(), error.size_limit()) {
        (Some(syntax), _) => {
            let lines = syntax.to_string();
            let reason = lines.lines().last().unwrap_or_default();
            format!("pattern {index}: {}", reason.trim_start_matches("error: "))
        }
        (_, Some(limit)) => format!("pattern {index} needs more than {limit} bytes"),
        _ => format!("pattern {index}: {error}"),
    }
}

struct RegexClassifier {
    texts: Vec<String>,
    memory: usize,
    payload_only: bool,
    search: Search,
}

impl InPlace for RegexClassifier {
    fn output_port(&mut self, _ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        let payload = packet.transport().filter(|_| self.payload_only);
        let bytes = payload.unwrap_or(packet.data());
        self.search.first(bytes).unwrap_or(DROPPED)
    }
}

impl RegexClassifier {
    fn set_pattern(&self, view: &View<'_>, value: &str) -> Result<Change, HandlerError> {
        let mut texts = self.texts.clone();
        texts[view.port] = unquote(value);
        let most = view.arg_context().environment.limits.reserve_bytes;
        let search = Search::of(&texts, self.memory, most).map_err(HandlerError::rejected)?;
        Ok(Change::of(move |me: &mut Self, _| {
            (me.texts, me.search) = (texts, search);
        }))
    }
}

impl Element for RegexClassifier {
    in_place!(plain);
}

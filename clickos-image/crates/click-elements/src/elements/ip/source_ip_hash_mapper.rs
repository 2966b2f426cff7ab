// SPDX-License-Identifier: Apache-2.0
//! Gives all flows of one source address the same of several patterns, and most addresses keep theirs when patterns come or go
//! (consistent hashing).
//!
//! # Synopsis
//! `SourceIPHashMapper(NODES SEED, PATTERN ID, ...)`: each PATTERN, a rewriter's pattern and its two outputs, takes NODES points on a
//! circle that depend on SEED and on its number ID; an address gets the pattern whose point comes next after its own.
//! # Ports
//! 0/0. A rewriter has the element's name as its INPUTSPEC.
//! # Handlers
//! None of its own.
//! # Differences from Click
//! The points of patterns depend on their own numbers only, so servers differ from Click's.
//! # Example
//! `lb :: SourceIPHashMapper(100 0x1234, - - 10.0.0.1 - 0 1 1, - - 10.0.0.2 - 0 1 2); rw :: IPRewriter(lb, drop);`
use click_core::sort;
use click_core::text::split_words;
use click_core::value::number;

use crate::prelude::*;
use crate::rewrite::mapper::{Choose, Mapper, point};
use crate::rewrite::pattern::{Outputs, Pattern};
use crate::rewrite::spec::with_outputs;

pub static ELEMENT: Class = Class {
    name: "SourceIPHashMapper",
    ports: "0/0",
    args: &[mandatory("NODES"), rest("PATTERN")],
    build,
    ..Class::DEFAULT
};

fn build(a: &mut Args<'_>) -> Built {
    let circle = a.need::<String>("NODES").and_then(|text| nodes(a, &text));
    let lines = a.rest().to_vec();
    if lines.is_empty() {
        a.error("PATTERN", "expected patterns, got none");
    }
    let servers: Vec<_> = lines.iter().filter_map(|line| server(a, line)).collect();
    let ((nodes, seed), most) = (circle?, a.environment().limits.table_entries);
    if nodes.saturating_mul(servers.len()) > most {
        a.error(
            "NODES",
            format!("{nodes} is too large, all patterns together have at most {most}"),
        );
        return None;
    }
    let points = |(n, (_, id)): (usize, &(_, u32))| {
        let (n, id) = (n, *id);
        (0..nodes as u32).map(move |node| (point(point(seed ^ id) ^ node), n))
    };
    let mut circle: Vec<_> = servers.iter().enumerate().flat_map(points).collect();
    sort::by(&mut circle, Ord::cmp);
    let patterns = servers.into_iter().map(|(pattern, _)| pattern).collect();
    Mapper::element(patterns, Choose::BySource(circle))
}

/// How many points a pattern takes, and what they depend on.
fn nodes(a: &mut Args<'_>, text: &str) -> Option<(usize, u32)> {
    let words = split_words(text);
    let numbers: Vec<_> = words.iter().filter_map(|word| number(word)).collect();
    match numbers.as_slice() {
        [nodes, seed] if words.len() == 2 && *nodes > 0 => {
            Some((usize::try_from(*nodes).ok()?, *seed as u32))
        }
        _ => {
            a.error(
                "NODES",
                format!("expected a number of nodes and a seed, got \"{text}\""),
            );
            None
        }
    }
}

/// A pattern and its number.
fn server(a: &mut Args<'_>, line: &str) -> Option<((Pattern, Outputs), u32)> {
    let words = split_words(line);
    let id = words.last().and_then(|word| number(word));
    let Some(id) = id.and_then(|id| u32::try_from(id).ok()) else {
        a.error(
            "PATTERN",
            expected("a pattern, outputs and the number of a server", line),
        );
        return None;
    };
    match with_outputs(
        &words[..words.len() - 1],
        usize::from(u16::MAX),
        a.arg_context(),
    ) {
        Ok(pattern) => Some((pattern, id)),
        Err(message) => {
            a.error("PATTERN", message);
            None
        }
    }
}

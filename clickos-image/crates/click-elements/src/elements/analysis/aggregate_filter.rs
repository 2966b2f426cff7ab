// SPDX-License-Identifier: Apache-2.0
//! Filters packets by their aggregate annotation.
//!
//! # Synopsis
//! `AggregateFilter(ACTION AGGREGATES, ...)`: the first RULE that lists a packet's aggregate decides. ACTION is `allow` (output 0),
//! `deny` or `drop`, or the number of an output; AGGREGATES are numbers and ranges such as `0-98`, or `all` or `-`. A packet that no
//! rule lists is dropped.
//! # Ports
//! 1/any, push.
//! # Handlers
//! None of its own.
//! # Example
//! `FromDump(in.pcap, STOP true) -> AggregateIPFlows -> AggregateFilter(deny 7 9-12, allow all) -> ToDump(out.pcap);`
use alloc::collections::BTreeMap;

use click_core::anno::AGGREGATE;
use click_core::sort;
use click_core::text::split_words;
use click_core::value::number;

use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "AggregateFilter",
    ports: "1/-",
    processing: "h/h",
    args: &[rest("RULE")],
    build: |a| {
        let rules = a.rest().to_vec();
        let mut outputs: Outputs = sort::tree([(0, DROPPED)]);
        // a later rule has nothing to say about what an earlier one lists
        for (index, rule) in rules.iter().enumerate().rev() {
            if let Err(message) = rule_into(&mut outputs, rule, a.outputs()) {
                a.error("RULE", format!("rule {index}: {message}"));
            }
        }
        Some(Box::new(AggregateFilter { outputs }))
    },
    ..Class::DEFAULT
};

/// Where aggregates go: each entry holds from its key up to the next one.
type Outputs = BTreeMap<u32, usize>;

fn rule_into(outputs: &mut Outputs, rule: &str, count: usize) -> Result<(), String> {
    let words = split_words(rule);
    let (action, aggregates) = words.split_first().ok_or("an empty rule")?;
    let output = crate::classify::program::action(action, count)?.unwrap_or(DROPPED);
    if aggregates.is_empty() {
        return Err("lists no aggregates".to_string());
    }
    for word in aggregates {
        let (first, last) =
            range(word).ok_or_else(|| format!("expected aggregates, got \"{word}\""))?;
        paint(outputs, first, last, output);
    }
    Ok(())
}

/// The numbers from the first to the last one.
fn range(word: &str) -> Option<(u32, u32)> {
    if matches!(word, "all" | "-") {
        return Some((0, u32::MAX));
    }
    let (first, last) = word.split_once('-').unwrap_or((word, word));
    let value = |text| number(text).and_then(|n| u32::try_from(n).ok());
    let (first, last) = (value(first)?, value(last)?);
    (first <= last).then_some((first, last))
}

fn paint(outputs: &mut Outputs, first: u32, last: u32, output: usize) {
    if let Some(behind) = last.checked_add(1) {
        let before = at(outputs, behind);
        outputs.insert(behind, before);
    }
    while let Some((n, _)) = outputs.range(first..=last).next() {
        let n = *n;
        outputs.remove(&n);
    }
    outputs.insert(first, output);
}

fn at(outputs: &Outputs, aggregate: u32) -> usize {
    let (_, output) = outputs
        .range(..=aggregate)
        .next_back()
        .expect("an entry for 0 is always there");
    *output
}

struct AggregateFilter {
    outputs: Outputs,
}

impl InPlace for AggregateFilter {
    const USE: Use = Use::Reads;

    fn output_port(&mut self, _ctx: &mut Context<'_>, packet: &mut Packet) -> usize {
        at(&self.outputs, packet.anno().u32(AGGREGATE))
    }
}

impl Element for AggregateFilter {
    in_place!(plain);
}

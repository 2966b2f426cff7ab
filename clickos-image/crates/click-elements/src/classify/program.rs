// SPDX-License-Identifier: Apache-2.0
//! A compiled list of rules: what IPFilter and IPClassifier run.
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use core::fmt::Write as _;

use click_core::offload::{Hits, Rules};
use click_core::{ArgContext, Batch, Packet, did_you_mean, memory, sort, text};

use super::expr::Expr;
use super::graph::Graph;
use super::listing::{self, Next};
use super::offload::Offloaded;
use super::parse::parse;
use super::region::{Cover, cover};
use super::short::Short;
use super::word::split;
use crate::headers::Headers;
use crate::lanes::{LANES, Lanes};
use crate::prelude::DROPPED;

/// One rule.
struct Rule {
    /// The output, or `None` to drop.
    output: Option<usize>,
    expr: Expr,
    text: String,
}

/// A compiled list of rules.
pub struct Program {
    rules: Vec<Rule>,
    /// One for each rule.
    tallies: Vec<Tally>,
    finder: Finder,
    /// For the packets of a batch.
    lanes: Lanes,
    /// Packets that the switch decided by a rule.
    switch: Vec<(usize, Hits)>,
}

/// The condition on a packet that a rule matches.
struct Tally {
    hits: u64,
    /// Its output, or `DROPPED`.
    way: usize,
}

/// The program that finds the first rule that matches.
enum Finder {
    Short(Short),
    Graph(Graph),
}

impl Finder {
    fn new(rules: &[Cover], reserve: usize) -> Self {
        match Short::new(rules) {
            Some(short) => Self::Short(short),
            None => Self::Graph(Graph::new(rules, reserve)),
        }
    }
}

/// Boxes that all rules are made of at most; rules for which there are none left are evaluated one by one.
const MAX_BOXES: usize = 1 << 17;
/// Rules between two looks for memory.
const RULES_PER_PROBE: usize = 64;

/// The boxes of rules, as far as `reserve` bytes of memory are left.
fn covers(rules: &[Rule], reserve: usize) -> Vec<Cover> {
    let mut left = MAX_BOXES;
    let bounded = |(index, rule): (usize, &Rule)| {
        if index % RULES_PER_PROBE == 0 && !memory::has_room(reserve) {
            left = 0;
        }
        let cover = cover(&rule.expr);
        match left.checked_sub(cover.boxes.len()) {
            Some(rest) => {
                left = rest;
                cover
            }
            None => Cover::everything(false),
        }
    };
    rules.iter().enumerate().map(bounded).collect()
}

/// The words that may come in front of a pattern.
const ACTIONS: [&str; 3] = ["allow", "deny", "drop"];

/// The words in front of a pattern.
/// Bytes of one rule: its words take many times as much while it is compiled.
const RULE_BYTES: usize = 1 << 16;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Syntax {
    /// `allow`, `deny`, `drop` or an output: IPFilter.
    Action,
    /// Nothing, the n-th pattern is output n: IPClassifier.
    Position,
}

impl Program {
    /// Compiles rules; all errors, each with the number of its rule from 0. Rules without actions are as many as
    /// outputs.
    pub fn compile(
        rules: &[String],
        syntax: Syntax,
        outputs: usize,
        at: ArgContext<'_>,
    ) -> Result<Self, Vec<String>> {
        let limit = at.environment.limits.table_entries;
        if rules.len() > limit {
            return Err(vec![format!("{} rules, the limit is {limit}", rules.len())]);
        }
        let (mut compiled, mut errors) = (Vec::new(), Vec::new());
        if syntax == Syntax::Position && rules.len() != outputs {
            let count = rules.len();
            errors.push(format!("{count} patterns for {outputs} outputs"));
        }
        for (index, rule) in rules.iter().enumerate() {
            match Rule::compile(rule, index, syntax, outputs, at) {
                Ok(rule) => compiled.push(rule),
                Err(message) => errors.push(format!("rule {index}: {message}")),
            }
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        compiled.shrink_to_fit();
        let reserve = at.environment.limits.reserve_bytes.max(memory::RESERVE);
        let covers = covers(&compiled, reserve);
        Ok(Self {
            tallies: compiled.iter().map(Tally::of).collect(),
            rules: compiled,
            finder: Finder::new(&covers, reserve),
            lanes: Lanes::default(),
            switch: Vec::new(),
        })
    }

    /// Appends the way of each packet of a batch.
    pub fn classify(&mut self, batch: &Batch, ways: &mut Vec<usize>) {
        for packets in batch.iter().as_slice().chunks(LANES) {
            self.classify_some(packets, ways);
        }
    }

    #[inline]
    fn classify_some(&mut self, packets: &[Packet], ways: &mut Vec<usize>) {
        let (rules, tallies) = (&self.rules, &mut self.tallies);
        match &self.finder {
            Finder::Short(short) => {
                let sets = short.sets(packets, &mut self.lanes);
                ways.extend(packets.iter().zip(sets).map(|(packet, set)| {
                    let found = short.first(set, |rule| rules[rule].holds(packet));
                    count(tallies, found)
                }));
            }
            Finder::Graph(graph) => ways.extend(packets.iter().map(|packet| {
                let headers = Headers::of(packet);
                let holds = |rule: usize| rules[rule].expr.holds(&headers);
                count(tallies, graph.find(&headers, holds))
            })),
        }
    }

    /// The text of the first rule that matches.
    pub fn decides(&self, headers: &Headers<'_>) -> &str {
        let found = self.rules.iter().find(|rule| rule.expr.holds(headers));
        found.map_or("no rule matches", |rule| &rule.text)
    }

    /// How often each rule matched, one a line with the rule.
    pub fn hits(&self) -> String {
        let lines = self.tallies.iter().zip(&self.rules).enumerate();
        lines
            .map(|(n, (t, r))| format!("{}\t{}\n", t.hits + self.hits_of_switch(n), r.text))
            .collect()
    }

    fn hits_of_switch(&self, rule: usize) -> u64 {
        let mut counters = self.switch.iter();
        counters
            .find(|(n, _)| *n == rule)
            .map_or(0, |(_, hits)| hits.get())
    }

    /// The rules for the switch, with the counters of those that drop; of packets that are `reassembled` it sees the
    /// fragments.
    pub fn offload(&mut self, reassembled: bool) -> Rules {
        let covers = self
            .rules
            .iter()
            .map(|r| (cover(&r.expr), r.output.is_none()));
        let offloaded = Offloaded::of(covers, reassembled);
        let rules = offloaded.rules.into_iter().map(|(rule, of)| {
            let hits = of.map_or_else(Hits::default, |n| self.counter(n));
            (rule.to_string(), hits)
        });
        Rules(rules.collect())
    }

    fn counter(&mut self, rule: usize) -> Hits {
        if let Some((_, hits)) = self.switch.iter().find(|(n, _)| *n == rule) {
            return Hits::clone(hits);
        }
        let hits = Hits::default();
        self.switch.push((rule, Hits::clone(&hits)));
        hits
    }

    /// Sets the hit counts to 0.
    pub fn reset_hits(&mut self) {
        self.tallies.iter_mut().for_each(|tally| tally.hits = 0);
        self.switch.iter().for_each(|(_, hits)| hits.set(0));
    }

    /// The rules by their texts, equal ones in their order.
    fn by_text(&self) -> Vec<(&str, usize)> {
        let texts = self.rules.iter().map(|rule| rule.text.as_str());
        let mut all: Vec<(&str, usize)> = texts.zip(0..).collect();
        sort::by(&mut all, Ord::cmp);
        all
    }

    /// Takes over the hit counts of rules that were there before; of equal ones each has its own.
    pub fn take_hits(&mut self, old: &Self) {
        let (before, now) = (old.by_text(), self.by_text());
        let mut places = vec![None; old.rules.len()];
        let mut rest = before.iter().peekable();
        for (text, n) in &now {
            while rest.next_if(|(known, _)| known < text).is_some() {}
            if let Some((_, known)) = rest.next_if(|(known, _)| known == text) {
                places[*known] = Some(*n);
            }
        }
        self.tallies.iter_mut().for_each(|tally| tally.hits = 0);
        for (known, place) in places.iter().enumerate() {
            if let Some(n) = place {
                self.tallies[*n].hits = old.tallies[known].hits;
            }
        }
        for (rule, hits) in &old.switch {
            let now = places[*rule];
            self.switch.extend(now.map(|n| (n, Hits::clone(hits))));
        }
    }

    /// The rules as a list of steps, as Click prints it.
    pub fn listing(&self) -> String {
        let steps = |rule: &Rule| {
            let mut steps = listing::expr::steps(&rule.expr);
            let output = rule.output.map_or(Next::Drop, Next::Output);
            listing::redirect(&mut steps, Next::Success, output);
            steps
        };
        let rules = self.rules.iter().map(steps).collect();
        listing::grouped(listing::merged(rules)).text()
    }

    /// The rules as they were understood.
    pub fn text(&self) -> String {
        let mut out = String::new();
        for (index, rule) in self.rules.iter().enumerate() {
            let output = rule.output.map_or("drop".to_string(), |o| format!("[{o}]"));
            let _ = writeln!(out, "{index}\t{output}\t{}", rule.expr);
        }
        out
    }
}

/// Counts the rule that was found; the way of its packet.
#[inline]
fn count(tallies: &mut [Tally], found: Option<usize>) -> usize {
    found.map_or(DROPPED, |rule| {
        let tally = &mut tallies[rule];
        tally.hits += 1;
        tally.way
    })
}

impl Tally {
    fn of(rule: &Rule) -> Self {
        Self {
            hits: 0,
            way: rule.output.unwrap_or(DROPPED),
        }
    }
}

impl Rule {
    /// True if it matches a packet; a function of its own, so that only callers look for headers.
    #[cold]
    fn holds(&self, packet: &Packet) -> bool {
        self.expr.holds(&Headers::of(packet))
    }

    fn compile(
        rule: &str,
        index: usize,
        syntax: Syntax,
        outputs: usize,
        at: ArgContext<'_>,
    ) -> Result<Self, String> {
        let bytes = rule.len();
        if bytes > RULE_BYTES {
            return Err(format!(
                "{bytes} bytes, the limit of one rule is {RULE_BYTES}"
            ));
        }
        let words = split(&text::unquote(rule));
        let (output, pattern) = match (syntax, words.split_first()) {
            (_, None) => return Err("an empty rule".to_string()),
            (Syntax::Action, Some((word, pattern))) => (action(word, outputs)?, pattern),
            (Syntax::Position, _) => (Some(index), words.as_slice()),
        };
        let everything = match pattern {
            [] => true,
            [word] => ["-", "any", "all"].contains(&word.as_str()),
            _ => false,
        };
        let expr = if everything {
            Expr::Const(true)
        } else {
            parse(pattern, at)?
        };
        Ok(Self {
            output,
            expr,
            text: rule.trim().to_string(),
        })
    }
}

/// The output that the first word of a rule means; none if packets are dropped.
pub fn action(word: &str, outputs: usize) -> Result<Option<usize>, String> {
    let output = match word {
        "deny" | "drop" => return Ok(None),
        "allow" => Some(0),
        number => number.parse::<usize>().ok(),
    };
    match output {
        Some(n) if n < outputs => Ok(Some(n)),
        Some(n) => Err(format!("no output {n}, the element has {outputs}")),
        None => {
            let hint = did_you_mean(word, ACTIONS.into_iter());
            Err(format!(
                "expected allow, deny, drop or an output, got \"{word}\"{hint}"
            ))
        }
    }
}

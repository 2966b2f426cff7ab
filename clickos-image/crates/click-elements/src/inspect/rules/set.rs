// SPDX-License-Identifier: Apache-2.0
//! A whole set of rules, ready for packets.
use click_core::Limits;
use click_core::memory::{RESERVE, has_room};

use super::header::{Nets, Ports, Protocol, Variables};
use super::options::Options;
use super::text::{self, fault, words};
use super::{Action, EndRef, Part, Rule};
use crate::inspect::prefilter::Prefilter;
use crate::prelude::*;

/// Rules of a set, and those of them without a content, which are asked for each packet.
const MAX: usize = 4096;
const MAX_PLAIN: usize = 64;
/// Bits of a flow.
const MAX_BITS: usize = 64;
/// Regular expressions of a set.
const MAX_PCRE: usize = 256;
/// Bytes that an expression takes at most while it is made.
const PCRE_BYTES: usize = 128 << 10;
/// Networks and ranges of ports in all different lists, and bytes that those of a rule take at most.
const MAX_ITEMS: usize = 16_384;
const LISTS_BYTES: usize = 32 << 10;
/// Bytes that a rule takes besides its text, and those that each byte of a text takes at most.
const RULE_BYTES: usize = 512;
const BYTES_PER_BYTE: usize = 8;
/// Faults that an error lists.
const FAULTS: usize = 20;

/// The names of the bits of flows: a name keeps its bit while sets follow each other.
#[derive(Clone, Debug, Default)]
pub struct Names {
    names: Vec<(String, bool)>,
}

impl Names {
    /// The bit of a name.
    pub fn bit(&mut self, name: &str) -> Result<u64, String> {
        let known = self.names.iter().position(|(known, _)| known == name);
        let free = || self.names.iter().position(|(known, _)| known.is_empty());
        let at = known.or_else(free).unwrap_or(self.names.len());
        if at == MAX_BITS {
            return Err(format!(
                "flowbits: {} names, the limit is {MAX_BITS}",
                MAX_BITS + 1
            ));
        }
        match self.names.get_mut(at) {
            Some(entry) => *entry = (name.into(), true),
            None => self.names.push((name.into(), true)),
        }
        Ok(1 << at)
    }

    /// The names for the next set, none of which is used yet.
    fn next(&self, text: &str) -> Self {
        let names = self.names.iter();
        let keep = |name: &str| {
            if text.contains(name) {
                name.into()
            } else {
                String::new()
            }
        };
        Self {
            names: names.map(|(name, _)| (keep(name), false)).collect(),
        }
    }

    /// The bits that mean in the other set what they mean here.
    pub fn common(&self, other: &Self) -> u64 {
        let pairs = self.names.iter().zip(&other.names).enumerate();
        let same = pairs.filter(|(_, (a, b))| a.0 == b.0 && !a.0.is_empty());
        same.fold(0, |bits, (at, _)| bits | 1 << at)
    }
}

/// How far back a stream is kept, in bytes, for a direction.
pub type Lookback = [usize; 2];

/// Numbers that a set depends on.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// Bytes of a stream that the contents of a rule may be apart.
    pub window: usize,
    pub limits: Limits,
}

/// The rules.
#[derive(Debug)]
pub struct RuleSet {
    pub rules: Vec<Rule>,
    pub nets: Vec<Nets>,
    pub ports: Vec<Ports>,
    pub names: Names,
    pub prefilter: Prefilter,
    /// Rules without a content.
    pub plain: Vec<u16>,
    pub lookback: Lookback,
    pub text: String,
}

impl RuleSet {
    /// Reads rules, a line each.
    ///
    /// # Errors
    /// What is wrong, with its line; at most twenty lines.
    pub fn of(text: &str, before: &Names, sizes: &Sizes) -> Result<Self, String> {
        let most = MAX.min(sizes.limits.table_entries);
        let needed = text.len() * BYTES_PER_BYTE + text.lines().count().min(most) * RULE_BYTES;
        if sizes.limits.reserve_bytes != 0 && !has_room(needed + RESERVE) {
            let length = text.len();
            return Err(format!(
                "rules of {length} bytes may take {needed} bytes, and no memory is left"
            ));
        }
        let mut reader = Reader::new(before.next(text));
        for (at, line) in text.lines().enumerate() {
            let needed = needed_by(line);
            let is_short = sizes.limits.reserve_bytes != 0 && needed > 0;
            let read = match is_short && !has_room(needed + RESERVE) {
                true => Err(format!("may take {needed} bytes, and no memory is left")),
                false => reader.line(line, most),
            };
            if let Err(reason) = read {
                reader.faults.push(format!("line {}: {reason}", at + 1));
            }
            if reader.faults.len() == FAULTS {
                break;
            }
        }
        match reader.faults.is_empty() {
            true => reader.finish(text, sizes),
            false => Err(reader.faults.join("\n")),
        }
    }

    /// Keeps streams for contents that are that many bytes apart.
    pub fn set_window(&mut self, window: usize) {
        self.lookback = lookback(&self.rules, window);
    }
}

/// Bytes that a line may take of which its length says nothing: its expressions, and what its variables stand for.
fn needed_by(line: &str) -> usize {
    let of = |word: &str, bytes| if line.contains(word) { bytes } else { 0 };
    of("pcre", PCRE_BYTES) + of("$", LISTS_BYTES)
}

struct Reader {
    variables: Variables,
    rules: Vec<Rule>,
    nets: Vec<Nets>,
    ports: Vec<Ports>,
    names: Names,
    /// In all lists.
    items: usize,
    pcre: usize,
    plain: usize,
    faults: Vec<String>,
}

/// The place of a value in a list, which it joins if it is new.
fn place<T: PartialEq>(list: &mut Vec<T>, value: T) -> u16 {
    let known = list.iter().position(|known| *known == value);
    let at = known.unwrap_or_else(|| {
        list.push(value);
        list.len() - 1
    });
    u16::try_from(at).expect("two for each of at most 4,096 rules")
}

impl Reader {
    fn new(names: Names) -> Self {
        Self {
            variables: Variables::usual(),
            rules: Vec::new(),
            nets: vec![Nets::ALL],
            ports: vec![Ports::ALL],
            names,
            items: 0,
            pcre: 0,
            plain: 0,
            faults: Vec::new(),
        }
    }

    fn line(&mut self, line: &str, most: usize) -> Result<(), String> {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            return Ok(());
        }
        if let ["var" | "ipvar" | "portvar", name, value] = words(line)[..] {
            return self.variables.set(name, value);
        }
        if self.rules.len() == most {
            return Err(format!("{} rules, the limit is {most}", most + 1));
        }
        let rule = self.rule(line)?;
        self.count(&rule)?;
        self.rules.push(rule);
        Ok(())
    }

    /// Counts what a set has few of.
    fn count(&mut self, rule: &Rule) -> Result<(), String> {
        let expressions = rule.parts.iter().filter(|part| part.content().is_none());
        let pcre = self.pcre + expressions.count();
        let plain = self.plain + usize::from(rule.parts.is_empty());
        let sid = rule.meta.sid;
        if self.rules.iter().any(|known| known.meta.sid == sid) {
            return Err(format!("sid: {sid} is given twice"));
        }
        if pcre > MAX_PCRE {
            return Err(format!(
                "pcre: {pcre} in all rules, the limit is {MAX_PCRE}"
            ));
        }
        if plain > MAX_PLAIN {
            return Err(format!(
                "{plain} rules without a content, the limit is {MAX_PLAIN}"
            ));
        }
        (self.pcre, self.plain) = (pcre, plain);
        Ok(())
    }

    fn rule(&mut self, line: &str) -> Result<Rule, String> {
        let wrong = |what: &str| {
            let got = line.split_whitespace().last().unwrap_or_default();
            expected(&format!("{what} at the end"), got)
        };
        let (head, rest) = line.split_once('(').ok_or_else(|| wrong("(options)"))?;
        let inner = rest.strip_suffix(')').ok_or_else(|| wrong(")"))?;
        let head = words(head);
        let [action, protocol, source, sport, arrow, destination, dport] = head[..] else {
            let count = head.len();
            return Err(format!(
                "{count} words in front of the options, expected 7: action protocol net port -> net port"
            ));
        };
        let is_mutual = match arrow {
            "->" => false,
            "<>" => true,
            _ => return Err(fault("direction", arrow, "expected -> or <>")),
        };
        let options = Options::of(&text::options(inner)?, &mut self.names)?;
        Ok(Rule {
            action: action_of(action)?,
            protocol: Protocol::of(protocol)?,
            ends: [self.end(source, sport)?, self.end(destination, dport)?],
            is_mutual,
            flow: options.flow,
            parts: options.parts,
            bits: options.bits,
            threshold: options.threshold,
            meta: options.meta,
        })
    }

    fn end(&mut self, nets: &str, ports: &str) -> Result<EndRef, String> {
        let nets = Nets::of(nets, &self.variables)?;
        let ports = Ports::of(ports, &self.variables)?;
        let (known_nets, known_ports) = (self.nets.len(), self.ports.len());
        let (items_of_nets, items_of_ports) = (nets.len(), ports.len());
        let end = EndRef {
            nets: place(&mut self.nets, nets),
            ports: place(&mut self.ports, ports),
        };
        self.items += items_of_nets * (self.nets.len() - known_nets);
        self.items += items_of_ports * (self.ports.len() - known_ports);
        if self.items > MAX_ITEMS {
            let items = self.items;
            return Err(format!(
                "{items} networks and ports in all lists, the limit is {MAX_ITEMS}"
            ));
        }
        Ok(end)
    }

    fn finish(mut self, text: &str, sizes: &Sizes) -> Result<RuleSet, String> {
        self.rules
            .sort_by_key(|rule| (rule.bits.order(), rule.action));
        let prefilter = Prefilter::of(&self.rules, sizes)?;
        let plain = (0..)
            .zip(&self.rules)
            .filter(|(_, rule)| rule.parts.is_empty());
        let plain = plain.map(|(at, _)| at).collect();
        let lookback = lookback(&self.rules, sizes.window);
        for entry in &mut self.names.names {
            if !entry.1 {
                entry.0.clear();
            }
        }
        Ok(RuleSet {
            rules: self.rules,
            nets: self.nets,
            ports: self.ports,
            names: self.names,
            prefilter,
            plain,
            lookback,
            text: text.into(),
        })
    }
}

fn action_of(word: &str) -> Result<Action, String> {
    Ok(match word {
        "alert" => Action::Alert,
        "drop" => Action::Drop,
        "pass" => Action::Pass,
        _ => return Err(fault("action", word, "expected alert, drop or pass")),
    })
}

/// How far back each direction has to be kept.
fn lookback(rules: &[Rule], window: usize) -> Lookback {
    let mut most = [0; 2];
    let contents = |rule: &Rule| {
        rule.parts
            .iter()
            .filter_map(Part::content)
            .map(|c| c.bytes.len())
            .sum()
    };
    for rule in rules.iter().filter(|rule| rule.protocol.is(6)) {
        let bytes = if rule.is_single() {
            contents(rule)
        } else {
            window
        };
        for (way, most) in (0..).zip(&mut most) {
            if !rule.parts.is_empty() && rule.flow.way.is_none_or(|asked| asked == way) {
                *most = bytes.max(*most);
            }
        }
    }
    most
}

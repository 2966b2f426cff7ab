// SPDX-License-Identifier: Apache-2.0
//! What new addresses and ports a flow gets.
use core::cell::Cell;
use core::fmt;

use click_core::ArgContext;
use click_core::value::number;

use super::pools::Pools;
use crate::flows::FlowId;
use crate::prelude::*;

/// Choices that are looked up for one flow, so that it takes bounded time where almost all are taken. Those known to be
/// taken do not count. More than half of them are left when none of the own port's parity is free.
const TRIES: u32 = 512;
/// That many choices that are taken, one after the other, are reason to remember them.
const FEW: u32 = 16;
/// Choices among which one of the own port's parity is looked for.
const ALIKE: u64 = 512;

/// Draws a random number up to the one given.
pub type Draw<'a> = &'a mut dyn FnMut(u32) -> u32;
/// The kind of name that stands for a pattern.
pub const NAMES: &str = "rewriter pattern";

/// In which order source ports or addresses of a range are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Choice {
    /// The one the flow has, then from a random one on.
    SameFirst,
    Random,
    Sequential,
}

/// Replacements; an address or port of 0 leaves the flow's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    source: Ipv4Addr,
    sport: u16,
    destination: Ipv4Addr,
    dport: u16,
    /// Ports are part of the pattern, and the range, if there is one, is of source ports.
    ports: bool,
    /// Source ports or addresses beyond the first.
    more: u32,
    choice: Choice,
    /// The choice to go on with.
    next: u32,
}

/// What a pattern consists of, with the outputs behind it.
pub const FORM: &str =
    "SADDR SPORT DADDR DPORT FOUTPUT ROUTPUT, or the name of a pattern and outputs";
/// Where packets and their answers leave.
pub type Outputs = [u16; 2];

fn bad(what: &str, word: &str) -> String {
    format!("bad {what} \"{word}\"")
}

/// The last two words of a pattern.
pub fn outputs(words: &[String], count: usize) -> Result<Outputs, String> {
    let [forward, reply] = words else {
        return Err(bad("forward port", &words.join(" ")));
    };
    let output =
        |word: &str, what: &str| number(word).ok_or_else(|| bad(&format!("{what} port"), word));
    let ports = [output(forward, "forward")?, output(reply, "reply")?];
    if let Some(port) = ports.iter().find(|port| **port >= count as u64) {
        return Err(no_output(*port, count));
    }
    Ok(ports.map(|port| u16::try_from(port).unwrap_or(u16::MAX)))
}

/// The message about a missing output.
pub fn no_output(port: u64, count: usize) -> String {
    format!("output port out of range: {port}, there are {count}")
}

/// A range without the mark behind it that says how to choose from it.
fn marked(text: &str) -> (&str, Choice) {
    match text.strip_suffix('#') {
        Some(range) => (range, Choice::Sequential),
        None => match text.strip_suffix('?') {
            Some(range) => (range, Choice::Random),
            None => (text, Choice::SameFirst),
        },
    }
}

/// First and last address, inclusive.
fn address_range(text: &str, at: ArgContext<'_>) -> Option<(u32, u32)> {
    if let Some((first, last)) = text.split_once('-') {
        let address = |text| Ipv4Addr::from_arg(text, at).ok().map(u32::from);
        return Some((address(first)?, address(last)?)).filter(|(first, last)| first <= last);
    }
    let prefix = Prefix::from_arg(text, at).ok()?;
    let (address, mask) = (u32::from(prefix.address), u32::from(prefix.mask));
    let hosts = !mask;
    if address == 0 || mask == 0 || hosts & hosts.wrapping_add(1) != 0 {
        return None;
    }
    let first = address & mask;
    Some(match hosts {
        0 => (address, address),
        1 => (first, first + 1),
        // neither the network nor everybody in it
        _ => (first + 1, first + hosts - 1),
    })
}

fn port_range(text: &str) -> Option<(u16, u16)> {
    let port = |text| number(text).and_then(|n| u16::try_from(n).ok());
    let (first, last) = text.split_once('-')?;
    Some((port(first)?, port(last)?)).filter(|(first, last)| first <= last)
}

fn single_port(text: &str) -> Option<u16> {
    let port = number(text).and_then(|n| u16::try_from(n).ok());
    port.filter(|port| *port > 0)
}

impl Pattern {
    /// Parses `SADDR DADDR`, `SADDR DADDR SPORT`, `SADDR SPORT DADDR DPORT` or the name of a pattern.
    ///
    /// # Errors The wrong part.
    pub fn parse(words: &[String], at: ArgContext<'_>) -> Result<Self, String> {
        let blank = "-".to_string();
        let (source, sport, destination, dport) = match words {
            [name] => return Self::named(name, at),
            [source, destination] => (source, &blank, destination, &blank),
            [source, destination, sport] => (source, sport, destination, &blank),
            [source, sport, destination, dport] => (source, sport, destination, dport),
            _ => return Err(expected(FORM, &words.join(" "))),
        };
        let mut pattern = Self::empty(words.len() > 2);
        pattern.set_source(source, at)?;
        pattern.set_sport(sport)?;
        if destination != "-" {
            let address = Ipv4Addr::from_arg(destination, at);
            pattern.destination = address.map_err(|_| bad("destination address", destination))?;
        }
        if dport != "-" {
            pattern.dport = single_port(dport).ok_or_else(|| bad("destination port", dport))?;
        }
        Ok(pattern)
    }

    fn empty(ports: bool) -> Self {
        Self {
            source: Ipv4Addr::UNSPECIFIED,
            sport: 0,
            destination: Ipv4Addr::UNSPECIFIED,
            dport: 0,
            ports,
            more: 0,
            choice: Choice::SameFirst,
            next: 0,
        }
    }

    fn named(name: &str, at: ArgContext<'_>) -> Result<Self, String> {
        let named = at.names.find(at.element, name);
        let Some(text) = named.and_then(|n| n.meanings.get(NAMES)) else {
            return Err(format!("no such pattern \"{name}\""));
        };
        let words = click_core::text::split_words(text);
        if words.len() < 2 {
            return Err(expected(FORM, text));
        }
        Self::parse(&words, at)
    }

    fn set_source(&mut self, word: &str, at: ArgContext<'_>) -> Result<(), String> {
        if word == "-" {
            return Ok(());
        }
        if let Ok(address) = Ipv4Addr::from_arg(word, at) {
            self.source = address;
            return Ok(());
        }
        let (range, choice) = marked(word);
        let (first, last) = address_range(range, at).ok_or_else(|| bad("source address", word))?;
        (self.source, self.more, self.choice) = (first.into(), last - first, choice);
        Ok(())
    }

    fn set_sport(&mut self, word: &str) -> Result<(), String> {
        if word == "-" {
            return Ok(());
        }
        if let Some(port) = single_port(word) {
            self.sport = port;
            return Ok(());
        }
        let (range, choice) = marked(word);
        let (first, last) = port_range(range).ok_or_else(|| bad("source port", word))?;
        (self.sport, self.more, self.choice) = (first, u32::from(last - first), choice);
        Ok(())
    }

    /// The flow with what does not depend on other flows replaced.
    fn fixed(&self, id: FlowId) -> FlowId {
        let address = |new: Ipv4Addr, old| if new.is_unspecified() { old } else { new };
        let port = |new: u16, old| if new == 0 { old } else { new };
        FlowId {
            source: address(self.source, id.source),
            destination: address(self.destination, id.destination),
            sport: port(self.sport, id.sport),
            dport: port(self.dport, id.dport),
        }
    }

    /// The flow with choice `n` of the range.
    fn choose(&self, id: FlowId, n: u32) -> FlowId {
        let mut id = self.fixed(id);
        if self.ports {
            id.sport = self.sport + u16::try_from(n).expect("the range ends at 65535");
        } else {
            id.source = (u32::from(self.source) + n).into();
        }
        id
    }

    /// What a flow becomes; `None` if all choices that were looked at are `taken`.
    pub fn rewrite(
        &mut self,
        id: FlowId,
        draw: Draw<'_>,
        taken: impl Fn(&FlowId) -> bool,
        pools: Option<(u16, &mut Pools)>,
    ) -> Option<FlowId> {
        if self.more == 0 {
            return Some(self.fixed(id));
        }
        let own = u32::from(id.sport).checked_sub(self.sport.into());
        let own = own.filter(|n| self.ports && self.choice == Choice::SameFirst && *n <= self.more);
        let looked = Cell::new(0);
        let free = |n: &u32| {
            looked.set(looked.get() + 1);
            !taken(&self.choose(id, *n))
        };
        let chosen = own.filter(free);
        let chosen = match chosen {
            None => {
                let start = self.start(draw);
                let like = self.choose(id, 0);
                let known = pools
                    .as_ref()
                    .and_then(|(map, pools)| pools.known(*map, &like));
                let unknown = |n: &u32| known.is_none_or(|known| !known.has(*n)) && free(n);
                let alike = self.alike(id, start, &unknown);
                alike.or_else(|| self.search(start, like, &free, &looked, pools))
            }
            chosen => chosen,
        }?;
        self.next = chosen.wrapping_add(1);
        Some(self.choose(id, chosen))
    }

    /// The first of a few free choices by which an even port stays even, and an odd one odd, where the own port is
    /// preferred (RFC 4787, REQ-4).
    fn alike(&self, id: FlowId, start: u32, free: &dyn Fn(&u32) -> bool) -> Option<u32> {
        if !self.ports || self.choice != Choice::SameFirst {
            return None;
        }
        let choices = u64::from(self.more) + 1;
        let all = (0..choices.min(ALIKE)).map(|n| ((u64::from(start) + n) % choices) as u32);
        let is_alike = |n: &u32| (u32::from(self.sport) + n + u32::from(id.sport)) & 1 == 0;
        all.filter(is_alike).find(|n| free(n))
    }

    /// The choice that is looked at first.
    fn start(&self, draw: Draw<'_>) -> u32 {
        match self.choice {
            Choice::Sequential if self.next > self.more => 0,
            Choice::Sequential => self.next,
            _ => draw(self.more),
        }
    }

    /// The first free choice from one on, for a flow that becomes `like` with choice 0; `looked` counts the calls of `free`.
    fn search(
        &self,
        start: u32,
        like: FlowId,
        free: &dyn Fn(&u32) -> bool,
        looked: &Cell<u32>,
        pools: Option<(u16, &mut Pools)>,
    ) -> Option<u32> {
        let choices = u64::from(self.more) + 1;
        let from = |n: u32| ((u64::from(start) + u64::from(n)) % choices) as u32;
        let (mut tried, mut at) = (0, start);
        let mut known = None;
        if let Some((map, pools)) = pools {
            if pools.find(map, &like).is_none() {
                while u64::from(tried) < choices.min(FEW.into()) {
                    at = from(tried);
                    if free(&at) {
                        return Some(at);
                    }
                    tried += 1;
                }
                pools.open(map, &like, self.more);
            }
            known = pools.find(map, &like);
        }
        let Some(known) = known else {
            let most = choices.min((tried + TRIES - looked.get()).into()) as u32;
            return (tried..most).map(from).find(free);
        };
        for _ in looked.get()..TRIES {
            at = known.next(at)?;
            if free(&at) {
                return Some(at);
            }
            known.take(at);
        }
        None
    }

    /// The choice with which this pattern may have made a flow like this.
    pub fn choice_of(&self, id: &FlowId) -> Option<u32> {
        let n = match self.ports {
            true => u32::from(id.sport).checked_sub(self.sport.into()),
            false => u32::from(id.source).checked_sub(self.source.into()),
        };
        n.filter(|n| *n <= self.more)
    }
}

/// The form `{:#}` can be parsed; the other one lacks the order in which choices are tried, as Click's handlers do.
impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let range =
            |f: &mut fmt::Formatter<'_>, first: &dyn fmt::Display, last: &dyn fmt::Display| {
                let mark = match self.choice {
                    Choice::Sequential if f.alternate() => "#",
                    Choice::Random if f.alternate() => "?",
                    _ => "",
                };
                match self.more {
                    0 => write!(f, "{first}"),
                    _ => write!(f, "{first}-{last}{mark}"),
                }
            };
        let last = Ipv4Addr::from(u32::from(self.source).saturating_add(self.more));
        match (self.ports, self.source.is_unspecified()) {
            (false, _) if self.more > 0 => range(f, &self.source, &last)?,
            (_, true) => f.write_str("-")?,
            (_, false) => write!(f, "{}", self.source)?,
        }
        match self.sport {
            _ if !self.ports => {}
            0 if self.more == 0 || !f.alternate() => f.write_str(" -")?,
            port => {
                f.write_str(" ")?;
                range(f, &port, &(u32::from(port) + self.more))?;
            }
        }
        match self.destination.is_unspecified() {
            true => f.write_str(" -")?,
            false => write!(f, " {}", self.destination)?,
        }
        match self.dport {
            _ if !self.ports => Ok(()),
            0 => f.write_str(" -"),
            port => write!(f, " {port}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flows::Freed;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn pattern(more: u32) -> Pattern {
        Pattern {
            sport: 1000,
            more,
            choice: Choice::Random,
            ..Pattern::empty(true)
        }
    }

    /// The first choice from `start` on that is not taken, one look-up after the other.
    fn plain(taken: &BTreeSet<u32>, start: u32, more: u32) -> Option<u32> {
        let all = (start..=more).chain(0..start);
        all.into_iter().find(|n| !taken.contains(n))
    }

    proptest! {
        #[test]
        fn remembered_choices_are_those_of_a_search_from_the_start(
            more in 1u32..500,
            steps in prop::collection::vec((any::<bool>(), any::<u32>(), 0u16..3), 1..900),
        ) {
            let (mut pattern, mut pools, mut freed) = (pattern(more), Pools::default(), Freed::default());
            let mut all: [BTreeSet<u32>; 3] = Default::default();
            for (ends, n, dport) in steps {
                let n = n % (more + 1);
                let id = FlowId { dport, ..FlowId::NONE };
                let taken = &mut all[usize::from(dport)];
                if ends && n % 4 == 0 && taken.remove(&n) {
                    let new = pattern.choose(id, n);
                    freed.add(&[FlowId::NONE, new.reverse()]);
                    continue;
                }
                pools.follow(&freed, |id| pattern.choice_of(id));
                let is_taken = |id: &FlowId| taken.contains(&u32::from(id.sport - 1000));
                let new = pattern.rewrite(id, &mut |_| n, is_taken, Some((0, &mut pools)));
                let want = plain(taken, n, more);
                prop_assert_eq!(new.map(|id| u32::from(id.sport) - 1000), want);
                // several in a step, so that the range fills up
                taken.extend(want);
                taken.extend(n..(n + 9).min(more));
            }
        }
    }

    /// Look-ups of a flow for which no choice is free.
    fn looks(pattern: &mut Pattern, sport: u16, pools: Option<(u16, &mut Pools)>) -> u32 {
        let looked = Cell::new(0);
        let taken = |_: &FlowId| {
            looked.set(looked.get() + 1);
            true
        };
        let id = FlowId {
            sport,
            ..FlowId::NONE
        };
        assert_eq!(pattern.rewrite(id, &mut |_| 7, taken, pools), None);
        looked.get()
    }

    #[test]
    fn an_exhausted_range_costs_few_look_ups_once_it_is_known() {
        let (mut pattern, mut pools) = (pattern(60_000), Pools::default());
        let mut full = || looks(&mut pattern, 0, Some((0, &mut pools)));
        assert_eq!((0..120).map(|_| full()).max(), Some(TRIES));
        assert_eq!(full(), 0);
    }

    #[test]
    fn neither_does_one_where_ports_of_the_same_parity_come_first() {
        let mut pattern = Pattern {
            choice: Choice::SameFirst,
            ..pattern(60_000)
        };
        let mut pools = Pools::default();
        let mut full = || looks(&mut pattern, 2000, Some((0, &mut pools)));
        assert_eq!((0..120).map(|_| full()).max(), Some(TRIES));
        assert!(full() <= 1, "its own port");
    }

    #[test]
    fn a_range_that_is_not_remembered_costs_no_more() {
        for choice in [Choice::SameFirst, Choice::Random] {
            let mut pattern = Pattern {
                choice,
                ..pattern(60_000)
            };
            assert_eq!(looks(&mut pattern, 2000, None), TRIES, "{choice:?}");
        }
    }
}
